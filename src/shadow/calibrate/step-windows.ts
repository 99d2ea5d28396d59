import { type Evidence, tpotOf } from "./evidence.ts";
import type { ForcedOutcome } from "./forced-replay.ts";

/** Windows of a run and of all runs at most, and endpoints whose own are kept. The first ones stand for the others. */
const WINDOWS_MAX = 128;
const WINDOWS_ALL_MAX = 1024;
const ENDPOINTS_MAX = 8;
const WINDOW_MICROS_MIN = 1_000_000;
/**
 * A request's ratio counts no further than this, a factor of 4.5 either way: beyond, its tokens came in one go after a
 * stall or stood still in a socket, which is no step's doing. Half of what an engine file may hold.
 */
const RATIO_MAX = 4.5;

/** Times that answers were under way, by endpoint and window of time, as they were and as a replay has them. */
export interface StepWindows {
  readonly windowMicros: number;
  readonly count: number;
  /** Per endpoint and window: time that answers were under way, and what the replay has for the same tokens. */
  readonly observed: readonly Float64Array[];
  readonly predicted: readonly Float64Array[];
}

/**
 * The observed and the replayed time of the answers that were under way, each for as much of a window as it was. Undefined
 * where nothing was answered. `stalledMicros`: what of each row's time after its first token its machine stood still.
 */
export function stepWindowsOf(
  evidence: Evidence,
  outcome: ForcedOutcome,
  stalledMicros: Float64Array,
): StepWindows | undefined {
  const { endpoints, rows } = evidence;
  let until = 0;
  for (const { ok, arrivalAt, e2eMicros } of rows) if (ok) until = Math.max(until, arrivalAt + e2eMicros);
  if (until === 0) return undefined;
  const windowsMax = Math.min(WINDOWS_ALL_MAX, WINDOWS_MAX * runStarts(evidence).length);
  const windowMicros = Math.max(WINDOW_MICROS_MIN, Math.ceil(until / windowsMax));
  const count = Math.floor(until / windowMicros) + 1;
  const kept = Math.min(endpoints.length, ENDPOINTS_MAX);
  const columns = () => Array.from({ length: kept }, () => new Float64Array(count));
  const [observed, predicted] = [columns(), columns()];
  rows.forEach((row, i) => {
    const ratio = ratioOf(row, outcome.tpotMicros[i]!, stalledMicros[i]!);
    if (Number.isNaN(ratio)) return;
    const [seen, expected] = [observed[row.endpoint % kept]!, predicted[row.endpoint % kept]!];
    const from = row.arrivalAt + row.ttftMicros;
    const to = row.arrivalAt + row.e2eMicros;
    for (let w = Math.floor(from / windowMicros); w * windowMicros < to; w++) {
      const part = Math.min(to, (w + 1) * windowMicros) - Math.max(from, w * windowMicros);
      seen[w]! += part;
      expected[w]! += part / ratio;
    }
  });
  return { windowMicros, count, observed, predicted };
}

/** Observed over predicted time per token, without what the machine stood still; NaN where either is not known. */
export function ratioOf(row: Evidence["rows"][number], predicted: number, stalledMicros: number): number {
  const observed = row.ok ? tpotOf(row) - stalledMicros / (row.outputTokens - 1) : NaN;
  if (!(observed > 0 && predicted > 0)) return NaN;
  return Math.min(RATIO_MAX, Math.max(1 / RATIO_MAX, observed / predicted));
}

/** Logarithms of observed over replayed time of all endpoints together, by window; NaN where nothing was answered. */
export function pooledOf({ observed, predicted, count }: StepWindows): number[] {
  return Array.from({ length: count }, (_, w) => Math.log(totalOf(observed, w) / totalOf(predicted, w)));
}

export function totalOf(columns: readonly Float64Array[], w: number): number {
  return columns.reduce((sum, column) => sum + column[w]!, 0);
}

/** When each run begins on the evidence's clock. */
export function runStarts({ laterRunsAt = [] }: Evidence): readonly number[] {
  return [0, ...laterRunsAt];
}
