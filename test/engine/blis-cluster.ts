import assert from "node:assert/strict";
import { type EngineConfig, engineDefaults, type EngineSemantics } from "#engine/config.ts";
import { Engine } from "#engine/engine.ts";
import type { EngineRequest } from "#engine/request.ts";
import type { EngineSink } from "#engine/sink.ts";
import type { StepTimeSpec } from "#engine/step-time/step-time.ts";

/** What BLIS, another simulator, does differently from vLLM. */
const BLIS_SEMANTICS: EngineSemantics = {
  completion: "last-step-start",
  preempted: "restarts",
  fullHit: "nothing",
  hitChunkStart: "zero",
  finalToken: "stored",
  partialBlocks: "back",
  duplicates: "last-writer",
};

export interface BlisRequest {
  readonly arrival: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Tokens shared with all other requests of the group; "" for none. */
  readonly group: string;
  readonly groupTokens: number;
  readonly deadline: number;
  readonly priority: number;
}

export interface BlisOutcome {
  instance: number;
  ttft: number;
  e2e: number;
  delay: number;
  /** Sum of the gaps between tokens. */
  gaps: number;
  firstTokenAt: number;
  lastTokenAt: number;
  done: boolean;
}

/** Latency per output token and after the last one, which BLIS adds outside the step clock. */
export interface OutputDelay {
  readonly perToken: number;
  readonly afterLast: number;
}

export interface BlisCluster {
  readonly engines: readonly Engine[];
  readonly outcomes: readonly BlisOutcome[];
  /** Time of the last event of each engine. */
  readonly endedAt: readonly number[];
  readonly itls: readonly number[];
}

/** BLIS blocks are all usable, vLLM reserves one. */
export function blisEngine(
  blocks: number,
  overrides: Partial<EngineConfig> & { stepTime: StepTimeSpec },
): EngineConfig {
  return engineDefaults({
    kvBlocks: blocks + 1,
    reserveFullPrompt: false,
    semantics: BLIS_SEMANTICS,
    coalesce: false,
    check: true,
    ...overrides,
  });
}

/** Runs the requests, dispatched in turn, in order of arrival. A decision at t sees what engines did before t. */
export function runRoundRobin(
  config: EngineConfig,
  instances: number,
  requests: readonly BlisRequest[],
  delay: OutputDelay,
): BlisCluster {
  const outcomes: BlisOutcome[] = requests.map(() => ({
    instance: -1,
    ttft: 0,
    e2e: 0,
    delay: 0,
    gaps: 0,
    firstTokenAt: 0,
    lastTokenAt: 0,
    done: false,
  }));
  const itls: number[] = [];
  const endedAt: number[] = Array.from({ length: instances }, () => 0);
  const engines = endedAt.map(
    (_, instance) => new Engine(config, blisSink(requests, outcomes, itls, endedAt, instance, delay)),
  );
  requests.forEach((request, position) => {
    engines.forEach((engine) => engine.advanceTo(request.arrival - 1));
    const instance = position % instances;
    const outcome = outcomes[position];
    assert.ok(outcome !== undefined);
    outcome.instance = instance;
    assert.equal(
      engines[instance]?.submit(request.arrival, engineRequest(request, position, config.blockTokens)),
      "queued",
    );
  });
  for (const engine of engines) {
    for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) engine.advanceTo(at);
  }
  return { engines, outcomes, endedAt, itls };
}

function blisSink(
  requests: readonly BlisRequest[],
  outcomes: readonly BlisOutcome[],
  itls: number[],
  endedAt: number[],
  instance: number,
  delay: OutputDelay,
): EngineSink {
  const find = (request: EngineRequest) => {
    const position = Number(request.id.slice("request_".length));
    const outcome = outcomes[position];
    const blis = requests[position];
    assert.ok(outcome !== undefined && blis !== undefined);
    return { outcome, arrival: blis.arrival };
  };
  return {
    admitted(at, request) {
      const { outcome, arrival } = find(request);
      outcome.delay = at - arrival;
      outcome.gaps = 0;
    },
    token(at, request, outputTokens) {
      const { outcome, arrival } = find(request);
      if (outputTokens === 1) {
        outcome.firstTokenAt = at;
        outcome.ttft = at - arrival + delay.perToken;
      } else {
        outcome.gaps += at - outcome.lastTokenAt + delay.perToken;
        itls.push(at - outcome.lastTokenAt + delay.perToken);
      }
      outcome.lastTokenAt = at;
    },
    finished(at, request, reason) {
      const { outcome } = find(request);
      outcome.done = reason === "stop";
      if (outcome.done) outcome.e2e = outcome.ttft + outcome.gaps + delay.afterLast;
      endedAt[instance] = Math.max(endedAt[instance] ?? 0, at);
    },
  };
}

/** Blocks that lie in the shared prefix are equal within a group; every other block is the request's own. */
function engineRequest(request: BlisRequest, position: number, blockTokens: number): EngineRequest {
  const blocks = Math.floor(request.promptTokens / blockTokens);
  const shared = request.group === "" ? 0 : Math.floor(request.groupTokens / blockTokens);
  const lanes = new Int32Array(blocks * 2);
  for (let i = 0; i < blocks; i++) {
    lanes[2 * i] = i < shared ? groupNumber(request.group) : position + 1;
    lanes[2 * i + 1] = i;
  }
  return {
    id: `request_${String(position)}`,
    promptTokens: request.promptTokens,
    outputTokens: request.outputTokens,
    lanes,
    priority: request.priority,
    deadlineAt: request.deadline > 0 ? request.deadline : undefined,
    cacheRead: true,
  };
}

function groupNumber(group: string): number {
  let hash = 7;
  for (let i = 0; i < group.length; i++) hash = Math.imul(hash, 31) + group.charCodeAt(i);
  return hash | 0x4000_0000;
}

/** Linear interpolation between ranks, as BLIS reports percentiles. */
export function percentile(values: readonly number[], p: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const rank = (p / 100) * (sorted.length - 1);
  const lower = Math.floor(rank);
  const upper = Math.min(lower + 1, sorted.length - 1);
  const low = sorted[lower] ?? 0;
  return low + ((sorted[upper] ?? 0) - low) * (rank - lower);
}
