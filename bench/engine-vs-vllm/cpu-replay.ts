import type { EngineConfig } from "#engine/config.ts";
import { Engine } from "#engine/engine.ts";
import type { BatchShape } from "#engine/step-time/batch-shape.ts";
import type { CpuRun, RunRequest, RunStep } from "./cpu-run.ts";
import type { Comparison } from "./errors.ts";

/** What lies between the client and the engine: from sending to the scheduler, from a step's end to the client. */
export interface RunDelays {
  readonly visibleMicros: number;
  readonly tokenMicros: number;
}

/** Of a run that does not show when its scheduler had the requests. */
const USUAL_DELAYS: RunDelays = { visibleMicros: 5500, tokenMicros: 1600 };

export interface CpuReplay {
  readonly cached: readonly number[];
  readonly firstAt: readonly number[];
  readonly lastAt: readonly number[];
  readonly shapes: readonly BatchShape[];
  readonly preemptions: number;
  readonly blocksStored: number;
  readonly blocksRemoved: number;
}

/** The medians of the run's own delays, where it recorded when its scheduler had the requests. */
export function delaysOf(run: CpuRun, replay: CpuReplay): RunDelays {
  const reported = [...run.requests.keys()].filter((i) => run.requests[i]!.queuedAt !== undefined);
  const median = (values: number[]) => values.filter(Number.isFinite).sort((a, b) => a - b)[values.length >> 1];
  const visibleMicros = median(reported.map((i) => (run.requests[i]!.queuedAt! - run.requests[i]!.send) * 1e6));
  const tokenMicros = median(reported.map((i) => run.requests[i]!.firstAt * 1e6 - (replay.firstAt[i] ?? NaN)));
  if (visibleMicros === undefined || tokenMicros === undefined) return USUAL_DELAYS;
  return { visibleMicros: Math.round(visibleMicros), tokenMicros: Math.round(tokenMicros) };
}

/**
 * The recorded starts and durations of the steps drive the clock, and requests are there when the scheduler had them,
 * as far as the run shows.
 */
export function replayRecordedSteps(run: CpuRun): CpuReplay {
  return replay(run, true, {
    queueDelay: { baseMicros: 0, perPromptTokenMicros: 0 },
    coalesce: false,
    stepTime: {
      kind: "measured",
      stepMicros: run.steps.map(({ micros }) => micros),
      startAt: run.steps.map(({ startAt }) => startAt),
    },
  });
}

/** The run's requests through an engine whose step time, gaps and queueing delay are given. */
export function replayCpuRun(run: CpuRun, overrides: Partial<EngineConfig>): CpuReplay {
  return replay(run, false, overrides);
}

/** Times in microseconds since the run began. */
function replay(run: CpuRun, recorded: boolean, overrides: Partial<EngineConfig>): CpuReplay {
  const cached: number[] = [];
  const firstAt: number[] = [];
  const lastAt: number[] = [];
  const shapes: BatchShape[] = [];
  let blocksStored = 0;
  let blocksRemoved = 0;
  const engine = new Engine(
    { ...run.engine, ...overrides },
    {
      admitted: (_, { id }, cachedTokens) => (cached[Number(id)] = cachedTokens),
      token: (at, { id }, tokens) => {
        if (tokens === 1) firstAt[Number(id)] = at;
        lastAt[Number(id)] = at;
      },
      finished: () => undefined,
      step: (_start, _end, shape) => shapes.push({ ...shape }),
      blocksStored: (_at, _request, _first, count) => (blocksStored += count),
      blockRemoved: () => blocksRemoved++,
    },
  );
  const hashes = hashesOf(run);
  run.requests.forEach((request, number) => {
    const sent = Math.round(request.send * 1e6);
    const queued =
      request.queuedAt === undefined ? sent + USUAL_DELAYS.visibleMicros : Math.round(request.queuedAt * 1e6);
    const outcome = engine.submit(recorded ? queued : sent, {
      id: String(number),
      promptTokens: request.promptTokens,
      outputTokens: request.outputTokens,
      hashes: hashes[number]!,
      priority: request.priority,
      deadlineAt: undefined,
      cacheRead: true,
    });
    if (outcome !== "queued")
      throw new Error(`request ${number} was served, but its engine would refuse it: ${outcome}`);
  });
  for (const [number, abortAt] of abortsOf(run)) engine.abort(abortAt, String(number));
  for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) engine.advanceTo(at);
  return {
    cached,
    firstAt,
    lastAt,
    shapes,
    preemptions: engine.gauges().preemptionsReported,
    blocksStored,
    blocksRemoved,
  };
}

function abortsOf(run: CpuRun): (readonly [number: number, at: number])[] {
  return run.requests
    .flatMap(({ abortedAt }, number) =>
      abortedAt === undefined ? [] : [[number, Math.round(abortedAt * 1e6)] as const],
    )
    .sort(([, a], [, b]) => a - b);
}

/**
 * Chains of the requests: blocks in a group's prefix are the group's, further prompt blocks those of the same text after
 * the same prefix, and output is its own.
 */
export function hashesOf({ requests, engine: { blockTokens } }: CpuRun): Int32Array[] {
  const numbers = new Map<string, number>();
  const numberOf = (text: string) => {
    const number = numbers.get(text) ?? numbers.size;
    numbers.set(text, number);
    return number;
  };
  return requests.map(({ group, prefixTokens, text, promptTokens, outputTokens }, position) => {
    const blocks = Math.floor((promptTokens + outputTokens) / blockTokens);
    const hashes = new Int32Array(2 * blocks);
    for (let i = 0; i < blocks; i++) {
      const end = (i + 1) * blockTokens;
      if (end <= prefixTokens) hashes[2 * i] = numberOf(`group ${group}`);
      else if (end <= promptTokens) hashes[2 * i] = numberOf(`text ${group} ${prefixTokens} ${text}`);
      else hashes[2 * i] = -1 - position;
      hashes[2 * i + 1] = i;
    }
    return hashes;
  });
}

/**
 * Whether the step has the real one's composition. vLLM counts a prompt that is computed again after a preemption among
 * the decodes, so that where anything was preempted requests and tokens are compared as a whole.
 */
export function sameStep(run: CpuRun, step: RunStep, shape: BatchShape | undefined): boolean {
  if (shape === undefined) return false;
  const { prefills, prefillTokens, decodes, decodeTokens } = step;
  if (run.preemptions === 0 && decodes === decodeTokens)
    return (
      shape.prefillSequences === prefills && shape.prefillTokens === prefillTokens && shape.decodeSequences === decodes
    );
  return (
    shape.prefillSequences >= prefills &&
    shape.prefillSequences + shape.decodeSequences === prefills + decodes &&
    shape.prefillTokens + shape.decodeSequences === prefillTokens + decodeTokens
  );
}

/** The requests that were answered whole, tokens reaching their clients after that delay. */
export function compareCpuRun(run: CpuRun, replay: CpuReplay, { tokenMicros }: RunDelays): Comparison[] {
  const whole = [...run.requests.keys()].filter((i) => run.requests[i]!.abortedAt === undefined);
  const compared = (name: string, real: (request: RunRequest) => number, predicted: (i: number) => number) => ({
    name,
    real: whole.map((i) => real(run.requests[i]!)),
    predicted: whole.map(predicted),
  });
  const since = (micros: number | undefined, i: number) =>
    ((micros ?? 0) + tokenMicros) / 1e3 - run.requests[i]!.send * 1e3;
  const gaps = ({ outputTokens }: RunRequest) => Math.max(1, outputTokens - 1);
  const { firstAt, lastAt } = replay;
  return [
    compared(
      "TTFT",
      (request) => (request.firstAt - request.send) * 1e3,
      (i) => since(firstAt[i], i),
    ),
    compared(
      "TPOT",
      (request) => ((request.lastAt - request.firstAt) * 1e3) / gaps(request),
      (i) => ((lastAt[i] ?? 0) - (firstAt[i] ?? 0)) / 1e3 / gaps(run.requests[i]!),
    ),
    compared(
      "E2E",
      (request) => (request.lastAt - request.send) * 1e3,
      (i) => since(lastAt[i], i),
    ),
  ];
}
