import type { Decision } from "#core/decision.ts";
import type { Endpoint } from "#core/endpoint/endpoint.ts";
import type { ProfileSpec } from "#core/profile/spec.ts";
import type { Micros } from "#core/units.ts";
import type { EngineConfig } from "#engine/config.ts";
import { simulate } from "#sim/simulate.ts";
import type { SignalOptions } from "#sim/signal/signal-options.ts";
import { type FleetEvent, NO_LATENCY } from "#sim/simulation-options.ts";
import { WorkloadArrivals } from "#sim/source/workload-arrivals.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";

/** What all candidates of a question have in common. Plain data, so that it can go to a worker. */
export interface Setting {
  readonly seed: number;
  readonly workload: readonly WorkloadRequest[];
  readonly endpoints: readonly Endpoint[];
  readonly fleetEvents: readonly FleetEvent[];
  readonly engine: EngineConfig;
  readonly signals: SignalOptions;
  readonly blockTokens: number;
  readonly staleAfterMicros: Micros;
  /** From the decision until the engine has the request, and from the engine until the client has a token. */
  readonly requestMicros: Micros;
  readonly answerMicros: Micros;
  readonly rateScale: number;
}

export interface Candidate {
  readonly name: string;
  readonly spec: ProfileSpec;
}

/** A candidate's outcome, a row per request of the workload in its order. NaN where a request never got that far. */
export interface CandidateOutcome {
  readonly name: string;
  readonly ttftMicros: Float64Array;
  readonly e2eMicros: Float64Array;
  /** Mean time per token after the first; NaN below two tokens. */
  readonly tpotMicros: Float64Array;
  readonly cachedTokens: Float64Array;
  /** Position in the setting's endpoints; -1 for none. */
  readonly endpoint: Int32Array;
  /** When it came, on the simulation's clock; NaN for never. */
  readonly arrivalMicros: Float64Array;
  readonly completed: number;
  /** Most requests in flight at one endpoint over the mean, averaged over decisions. */
  readonly imbalance: number;
}

/**
 * Runs the workload under one profile. Same arguments, same bytes, in any thread. `watch` sees the decision on every
 * request's arrival.
 */
export function runCandidate(
  setting: Setting,
  { name, spec }: Candidate,
  watch?: (requestIndex: number, decision: Decision) => void,
): CandidateOutcome {
  const { workload, endpoints, engine } = setting;
  let imbalanceSum = 0;
  let imbalances = 0;
  const { outcomes } = simulate({
    router: {
      seed: setting.seed,
      profiles: { [name]: spec },
      defaultProfile: name,
      blockTokens: setting.blockTokens,
      staleAfterMicros: setting.staleAfterMicros,
    },
    engines: endpoints.map((endpoint) => ({ endpoint: sized(endpoint, engine), config: engine })),
    fleetEvents: setting.fleetEvents.map((event) =>
      event.kind === "endpoint-joined" ? { ...event, endpoint: sized(event.endpoint, engine) } : event,
    ),
    engineOf: () => engine,
    arrivals: new WorkloadArrivals(workload, {
      seed: setting.seed,
      blockTokens: setting.blockTokens,
      timeoutMicros: Infinity,
      timeScale: 1,
      rateScale: setting.rateScale,
    }),
    signals: setting.signals,
    prefixes: { kind: "approximate" },
    latency: { ...NO_LATENCY, requestMicros: setting.requestMicros, answerMicros: setting.answerMicros },
    horizonMicros: Infinity,
    over: "answered",
    tokenGaps: false,
    check: false,
    observe: (input, decision) => {
      if (input.kind !== "request-arrived" || decision === undefined) return;
      watch?.(Number(input.request.id.slice(REQUEST_PREFIX.length)), decision);
      const loads = decision.breakdown.candidates.map(({ requestsInFlight }) => requestsInFlight);
      const mean = loads.reduce((sum, load) => sum + load, 0) / loads.length;
      if (mean === 0) return;
      imbalanceSum += Math.max(...loads) / mean;
      imbalances++;
    },
  });
  const rows = workload.length;
  const outcome: CandidateOutcome = {
    name,
    ttftMicros: new Float64Array(rows).fill(NaN),
    e2eMicros: new Float64Array(rows).fill(NaN),
    tpotMicros: new Float64Array(rows).fill(NaN),
    cachedTokens: new Float64Array(rows).fill(NaN),
    endpoint: new Int32Array(rows).fill(-1),
    arrivalMicros: new Float64Array(rows).fill(NaN),
    completed: countCompleted(outcomes),
    imbalance: imbalances === 0 ? 1 : imbalanceSum / imbalances,
  };
  for (let row = 0; row < outcomes.length; row++) {
    const index = Number(outcomes.ids[row]!.slice(REQUEST_PREFIX.length));
    outcome.arrivalMicros[index] = outcomes.arrivalAt[row]!;
    if (!outcomes.isCompleted(row)) continue;
    const tokens = outcomes.outputTokens[row]!;
    outcome.ttftMicros[index] = outcomes.ttft[row]!;
    outcome.e2eMicros[index] = outcomes.e2e[row]!;
    if (tokens > 1) outcome.tpotMicros[index] = (outcomes.e2e[row]! - outcomes.ttft[row]!) / (tokens - 1);
    outcome.cachedTokens[index] = outcomes.cachedTokens[row]!;
    outcome.endpoint[index] = outcomes.endpoint[row]!;
  }
  return outcome;
}

/** How WorkloadArrivals names the request of an index. */
const REQUEST_PREFIX = "request_";

function countCompleted(outcomes: { readonly length: number; isCompleted(row: number): boolean }): number {
  let completed = 0;
  for (let row = 0; row < outcomes.length; row++) if (outcomes.isCompleted(row)) completed++;
  return completed;
}

function sized(endpoint: Endpoint, { kvBlocks, blockTokens, sequencesMax }: EngineConfig): Endpoint {
  return { ...endpoint, kvCapacityTokens: (kvBlocks - 1) * blockTokens, concurrencyMax: sequencesMax };
}
