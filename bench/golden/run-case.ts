import type { Decision } from "#core/input/decision.ts";
import { numberedIds } from "#core/endpoint/numbered-ids.ts";
import type { Input } from "#core/input/input.ts";
import { queueMicros } from "#engine/config.ts";
import { Simulation } from "#sim/simulation.ts";
import { type ListedArrival, ListedArrivals } from "../simulate/listed-arrivals.ts";
import { tieBreaks } from "./go-random.ts";
import type { GoldenCase, GoldenRequest } from "./golden-case.ts";
import { SeenLoad } from "./seen-load.ts";

/** What the router saw and decided, engine by engine. */
export interface SeenDecision {
  readonly at: number;
  readonly request: number;
  readonly queue: readonly number[];
  readonly batch: readonly number[];
  readonly inFlight: readonly number[];
  readonly kvUtilization: readonly number[];
  readonly cachedTokens: readonly number[];
  /** By scorer and engine. */
  readonly values: readonly (readonly number[])[];
  readonly totals: readonly number[];
  readonly chosen: number;
}

export interface GoldenRun {
  /** By engine. */
  readonly steps: readonly EngineSteps[];
  readonly simulation: Simulation;
  readonly decisions: readonly SeenDecision[];
}

/** When an engine's steps started and ended, in order of their starts. */
export interface EngineSteps {
  readonly startAt: readonly number[];
  readonly endAt: readonly number[];
}

/** Runs a case in the simulator, as the one that made it ran it. */
export function runCase(golden: GoldenCase): GoldenRun {
  const decisions: SeenDecision[] = [];
  const ids = numberedIds("instance", golden.instances);
  const steps = ids.map(() => ({ startAt: [] as number[], endAt: [] as number[] }));
  const seen = new SeenLoad(ids);
  const ties = tieBreaks(golden.seed);
  const watch = (input: Input, decision: Decision | undefined) => {
    seen.observe(input, decision);
    if (decision?.kind !== "routed" || golden.expected.decisions.length === 0) return;
    const { candidates, values, totals, scorers } = decision.breakdown;
    decisions.push({
      at: decision.at,
      request: Number(decision.requestId.slice("request_".length)),
      queue: [...seen.queue],
      batch: [...seen.batch],
      inFlight: candidates.map(({ requestsInFlight }) => requestsInFlight),
      kvUtilization: candidates.map(({ kvUtilization }) => kvUtilization),
      cachedTokens: candidates.map(({ hitTokens }) => hitTokens),
      values: scorers.map((_, s) => [...values.subarray(s * candidates.length, (s + 1) * candidates.length)]),
      totals: [...totals],
      chosen: ids.indexOf(decision.endpoint),
    });
  };
  const simulation = new Simulation({
    router: {
      seed: 42,
      profiles: { golden: golden.profile },
      defaultProfile: "golden",
      blockTokens: golden.engine.blockTokens,
      staleAfterMicros: Infinity,
      streamOf: () => ties,
    },
    engines: ids.map((id) => ({
      config: golden.engine,
      endpoint: {
        id,
        models: [],
        labels: {},
        kvCapacityTokens: (golden.indexBlocks ?? golden.engine.kvBlocks - 1) * golden.engine.blockTokens,
        concurrencyMax: undefined,
      },
    })),
    arrivals: new ListedArrivals(arrivalsOf(golden)),
    signals: golden.signals,
    prefixes: golden.prefixes,
    engineCaches: golden.engineCaches,
    latency: {
      admissionMicros: golden.admissionMicros,
      routingMicros: golden.routingMicros,
      requestMicros: 0,
      answerMicros: 0,
      perOutputTokenMicros: golden.perOutputTokenMicros,
      afterLastTokenMicros: golden.afterLastTokenMicros,
    },
    ...(golden.admission && { admission: golden.admission(seen) }),
    horizonMicros: golden.horizonMicros,
    atHorizon: "reported",
    over: "released",
    tokenGaps: true,
    stepped(engine, startAt, endAt) {
      steps[engine]!.startAt.push(startAt);
      steps[engine]!.endAt.push(endAt);
    },
    check: true,
    observe: watch,
  });
  simulation.run();
  return { simulation, decisions, steps };
}

function arrivalsOf(golden: GoldenCase): ListedArrival[] {
  const { requests, engine } = golden;
  const groups = [...new Set(requests.map(({ group }) => group))];
  const listed = requests.map((request, position): ListedArrival => {
    const hashes = hashesOf(request, position, groups.indexOf(request.group), engine.blockTokens);
    return {
      route: {
        id: `request_${position}`,
        model: "",
        tenant: "",
        session: "",
        sloClass: "",
        priority: request.priority,
        promptTokens: request.promptTokens,
        promptTokensExact: true,
        outputTokensMax: request.outputTokens,
        sequences: 1,
        blocks: { hashes, length: hashes.length >> 1, blockTokens: engine.blockTokens },
        profile: "",
      },
      arrivalAt: request.arrivalAt,
      outputTokens: request.outputTokens,
      // There, a client that gives up before the engine has seen its request is noticed then.
      deadlineAt: request.deadlineAt <= seenAt(golden, request) ? request.arrivalAt : request.deadlineAt,
    };
  });
  return listed.sort((a, b) => a.arrivalAt - b.arrivalAt);
}

/** When a request's engine sees it. */
export function seenAt(golden: GoldenCase, { arrivalAt, promptTokens }: GoldenRequest): number {
  const { admissionMicros, routingMicros, engine } = golden;
  return arrivalAt + admissionMicros + routingMicros + queueMicros(engine.queueDelay, promptTokens);
}

/** Blocks that lie in the shared prefix are equal within a group; every other block is the request's own. */
function hashesOf(request: GoldenRequest, position: number, group: number, blockTokens: number): Int32Array {
  const blocks = Math.floor(request.promptTokens / blockTokens);
  const shared = request.group === "" ? 0 : Math.floor(request.groupTokens / blockTokens);
  const hashes = new Int32Array(2 * blocks);
  for (let i = 0; i < blocks; i++) {
    hashes[2 * i] = i < shared ? -1 - group : position;
    hashes[2 * i + 1] = i;
  }
  return hashes;
}
