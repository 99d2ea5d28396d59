import type { StepResiduals } from "#engine/step-drift.ts";
import { type Evidence, tpotOf } from "./evidence.ts";
import { firstTokenResidualsOf } from "./first-token-residuals.ts";
import type { ForcedOutcome } from "./forced-replay.ts";
import { type Parameters } from "./parameters.ts";

/** Windows of a trace at most, and endpoints whose own are kept. The first ones stand for the others. */
const WINDOWS_MAX = 128;
const ENDPOINTS_MAX = 8;
const WINDOW_MICROS_MIN = 1_000_000;
/** Fewer windows tell nothing of a drift. */
const WINDOWS_MIN = 8;
/**
 * A request's ratio counts no further than this, a factor of 4.5 either way: beyond, its tokens came in one go after a
 * stall or stood still in a socket, which is no step's doing. Half of what an engine file may hold.
 */
const LOG_RATIO_MAX = 1.5;
/** A parameter is never less sure than so. */
const ERROR_MAX = 0.5;

/**
 * How far steps were from the model's over time: the ratio of observed to replayed time per token of the requests that
 * were being answered, each for as much of a window as it was, in logarithms. A window's mean holds what many steps have
 * in common, which is what moves means; the noise of single steps averages out. The level's error is that of the mean of
 * dependent windows (by batches), and what later traffic, which was not fitted, was off by. Undefined where a trace is
 * too short to tell.
 */
export function stepResidualsOf(
  evidence: Evidence,
  outcome: ForcedOutcome,
  split: number,
  parameters: Parameters,
  errors: Partial<Parameters>,
): StepResiduals | undefined {
  const grid = gridOf(evidence, outcome);
  if (grid === undefined) return undefined;
  const { windowMicros, sums, weights, count } = grid;
  const pooled = Array.from({ length: count }, (_, w) => meanOf(sums, weights, w));
  // A window in which nothing was answered anywhere says nothing: time goes on without it.
  const told = pooled.flatMap((value, w) => (Number.isNaN(value) ? [] : [w]));
  if (told.length < WINDOWS_MIN) return undefined;
  const known = told.map((w) => pooled[w]!);
  const level = mean(known);
  const windows = sums.map((sum, e) =>
    told.map((w) => rounded((weights[e]![w]! > 0 ? sum[w]! / weights[e]![w]! : pooled[w]!) - level)),
  );
  const later = heldOutMean(evidence, outcome, split);
  const shareOf = (name: keyof Parameters) => {
    const share = (errors[name] ?? 0) / parameters[name];
    return share > 0 ? rounded(Math.min(ERROR_MAX, share)) : 0;
  };
  return {
    windowMicros,
    windows,
    levelError: rounded(Math.min(ERROR_MAX, Math.hypot(batchError(known), Number.isNaN(later) ? level : later))),
    delayError: shareOf("delayMicros"),
    prefillError: shareOf("perPrefillTokenMicros"),
    firstTokens: firstTokenResidualsOf(evidence, outcome),
  };
}

interface Grid {
  readonly windowMicros: number;
  readonly count: number;
  /** Per endpoint and window: log ratios times the time that they hold for, and that time. */
  readonly sums: readonly Float64Array[];
  readonly weights: readonly Float64Array[];
}

function gridOf({ endpoints, rows }: Evidence, outcome: ForcedOutcome): Grid | undefined {
  let until = 0;
  for (const { ok, arrivalAt, e2eMicros } of rows) if (ok) until = Math.max(until, arrivalAt + e2eMicros);
  if (until === 0) return undefined;
  const windowMicros = Math.max(WINDOW_MICROS_MIN, Math.ceil(until / WINDOWS_MAX));
  const count = Math.floor(until / windowMicros) + 1;
  const kept = Math.min(endpoints.length, ENDPOINTS_MAX);
  const columns = () => Array.from({ length: kept }, () => new Float64Array(count));
  const [sums, weights] = [columns(), columns()];
  rows.forEach((row, i) => {
    const ratio = logRatio(row, outcome.tpotMicros[i]!);
    if (Number.isNaN(ratio)) return;
    const [sum, weight] = [sums[row.endpoint % kept]!, weights[row.endpoint % kept]!];
    const from = row.arrivalAt + row.ttftMicros;
    const to = row.arrivalAt + row.e2eMicros;
    for (let w = Math.floor(from / windowMicros); w * windowMicros < to; w++) {
      const part = Math.min(to, (w + 1) * windowMicros) - Math.max(from, w * windowMicros);
      sum[w]! += ratio * part;
      weight[w]! += part;
    }
  });
  return { windowMicros, count, sums, weights };
}

function logRatio(row: Evidence["rows"][number], predicted: number): number {
  const observed = row.ok ? tpotOf(row) : NaN;
  if (!(observed > 0 && predicted > 0)) return NaN;
  return Math.min(LOG_RATIO_MAX, Math.max(-LOG_RATIO_MAX, Math.log(observed / predicted)));
}

/** Mean log ratio over the time in which requests that were not fitted were answered; NaN without any. */
function heldOutMean({ rows }: Evidence, outcome: ForcedOutcome, split: number): number {
  let sum = 0;
  let time = 0;
  for (let i = split; i < rows.length; i++) {
    const ratio = logRatio(rows[i]!, outcome.tpotMicros[i]!);
    if (Number.isNaN(ratio)) continue;
    const part = rows[i]!.e2eMicros - rows[i]!.ttftMicros;
    sum += ratio * part;
    time += part;
  }
  return sum / time;
}

function meanOf(sums: readonly Float64Array[], weights: readonly Float64Array[], w: number): number {
  let sum = 0;
  let weight = 0;
  for (let e = 0; e < sums.length; e++) {
    sum += sums[e]![w]!;
    weight += weights[e]![w]!;
  }
  return sum / weight;
}

/** Standard error of the mean of dependent values: that of the means of about sqrt(n) batches of neighbours. */
function batchError(values: readonly number[]): number {
  const batches = Math.max(2, Math.floor(Math.sqrt(values.length)));
  const means = Array.from({ length: batches }, (_, b) =>
    mean(values.slice(Math.floor((b * values.length) / batches), Math.floor(((b + 1) * values.length) / batches))),
  );
  const centre = mean(means);
  const squares = means.reduce((sum, one) => sum + (one - centre) ** 2, 0);
  return Math.sqrt(squares / (batches - 1) / batches);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function rounded(value: number): number {
  return Math.round(value * 1e5) / 1e5;
}
