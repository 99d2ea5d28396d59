import type { RequestPrediction } from "#core/rollout/rollout-input.ts";
import type { Micros } from "#core/base/units.ts";
import { type CandidateOutcome, runCandidate, type Setting } from "../candidate/candidate.ts";
import type { RecordedRun } from "../recorded/recorded-run.ts";
import type { AwaitedRequests } from "./awaited-requests.ts";

/** What is predicted of requests of one rollout. */
export interface RolloutPredictions {
  readonly rollout: string;
  readonly requests: readonly RequestPrediction[];
}

/** Of the run's requests: one that ended so long ago shared its engine with nearly none that is still under way. */
const ENDED_QUANTILE = 0.99;

/**
 * What the simulator makes of requests that ended and wait for it, if the control had routed all traffic. Requests
 * under way are missing in a simulation of what is known, so those are predicted alone that ended long enough ago. One
 * that the run does not hold gets a row without times, and waits no longer, unless another gateway may have had it.
 *
 * A prediction may take away only what no arm can change. It knows when a request came and how long its answer was, which a
 * router does not decide; a conversation's later turns come as long after the answer before them as they did.
 */
export function requestPredictions(
  waiting: readonly AwaitedRequests[],
  at: Micros,
  known: () => { readonly run: RecordedRun; readonly setting: Setting },
): RolloutPredictions[] {
  if (waiting.length === 0) return [];
  const { run, setting } = known();
  const until = at - answerLag(run);
  const rows = new Map(run.requestIds?.map((id, row) => [id, row]));
  return waiting.flatMap(({ rollout, control, isShared, requests }) => {
    const ended = requests.filter(([id, endAt]) => endAt <= until && (!isShared || rows.has(id)));
    if (ended.length === 0) return [];
    const outcome = runCandidate(setting, { name: "control", spec: controlOf(control, run) });
    return [{ rollout, requests: ended.map(([id]) => predictionOf(id, outcome, rows.get(id))) }];
  });
}

function controlOf({ name, spec }: AwaitedRequests["control"], { header }: RecordedRun) {
  const { profiles, defaultProfile } = header.router;
  return spec ?? profiles[name] ?? profiles[defaultProfile]!;
}

/** How long nearly all answers of a run took. */
export function answerLag({ observed }: RecordedRun): Micros {
  const times = observed.map(({ e2eMicros }) => e2eMicros).filter(Number.isFinite);
  times.sort((a, b) => a - b);
  return times[Math.floor(ENDED_QUANTILE * times.length)] ?? 0;
}

function predictionOf(id: string, outcome: CandidateOutcome, row: number | undefined): RequestPrediction {
  const of = (column: Float64Array) => {
    const value = row === undefined ? NaN : column[row]!;
    return Number.isNaN(value) ? null : Math.round(value);
  };
  return [id, of(outcome.ttftMicros), of(outcome.tpotMicros), of(outcome.e2eMicros)];
}
