import type { BetweenRuns, StepDrift, StepResiduals } from "#engine/step-drift.ts";
import { betweenRunsOf } from "../recorded/between-runs.ts";
import type { Evidence } from "./evidence.ts";
import { explainedNoise } from "./explained-noise.ts";
import { firstTokenDeviation, firstTokenResidualsOf } from "./first-token-residuals.ts";
import { usualLevel } from "../candidate/usual-level.ts";
import type { ForcedOutcome } from "./forced-replay.ts";
import type { Parameters } from "./parameters.ts";
import { levelsLeft, runSpeeds, windowsByRun } from "./run-speeds.ts";
import { pooledOf, runStarts, type StepWindows, totalOf } from "./step-windows.ts";
import { meanOf } from "../figure/mean-of.ts";
import { median } from "#core/base/quantile.ts";

/** Fewer windows show nothing of a drift. */
const WINDOWS_MIN = 8;
/** A parameter is never less sure than so. */
const ERROR_MAX = 0.5;
const NORMAL_PER_MEDIAN_DISTANCE = 1.4826;

/** What the fit came to, and what else its residuals show. */
export interface FitFacts {
  readonly parameters: Parameters;
  /** Standard errors of them. */
  readonly errors: Partial<Parameters>;
  /** Of predicted over observed mean E2E on requests that were held out; NaN without any. */
  readonly heldOutError: number;
  /** What another run is off by where this evidence is of one run alone. */
  readonly betweenRuns: BetweenRuns | undefined;
  /** How fast each run was taken to be while the engine was fitted: logarithms, see RunSpeeds. */
  readonly speeds: readonly number[];
  /** The replay on engines that drift so; on those that were fitted for undefined. */
  readonly replayed: (drift: StepDrift | undefined) => ForcedOutcome;
}

/**
 * How far steps were from the model's over time, at the speed that each run had: the observed over the replayed time of the
 * answers that were under way, each for as much of a window as it was, in logarithms. A window's value holds what many steps have in common, which is
 * what moves means; the noise of single steps averages out, and stalls of the machine stand apart. What the windows have
 * in common stays in them: a robust fit leaves out what is rare and long. The level's error is that of the mean of
 * dependent windows (by batches). Undefined where a trace is too short.
 */
export function stepResidualsOf(evidence: Evidence, facts: FitFacts): StepResiduals | undefined {
  const { parameters, errors, heldOutError, betweenRuns, speeds, replayed } = facts;
  const { levels, answers, outcome, stalls, windows: grid } = runSpeeds(evidence, replayed, speeds);
  if (grid === undefined) return undefined;
  const { windowMicros, observed, predicted } = grid;
  const pooled = pooledOf(grid);
  const runs = windowsByRun(evidence, grid);
  const filled = runs.flat();
  if (filled.length < WINDOWS_MIN) return undefined;
  const left = levelsLeft(evidence, outcome, stalls.decodeMicros);
  const common = meanOf(left.filter(Number.isFinite));
  const runOf = new Map(runs.flatMap((inside, r) => inside.map((w) => [w, r] as const)));
  const noise = explainedNoise(
    evidence,
    outcome,
    firstTokenResidualsOf(evidence, outcome, stalls.firstMicros),
    stalls.seen,
  );
  // A window in which nothing was answered anywhere carries no evidence: time goes on without it.
  const drifts = observed.map((micros, e) =>
    filled.map((w) => {
      const own = predicted[e]![w]! > 0 ? Math.log(micros[w]! / predicted[e]![w]!) : pooled[w]!;
      return own - (left[runOf.get(w)!]! - common);
    }),
  );
  // Windows of few answers count as much as those of many: their mean is moved to where that of the answers lies.
  const whole = levelsLeft(evidence, outcome, new Float64Array(evidence.rows.length)).filter(Number.isFinite);
  const moved = meanOf(whole) - usualLevel({ windows: drifts, stalls: noise.stalls });
  const windows = drifts.map((logs) => logs.map((value) => rounded(value + moved)));
  const shareOf = (name: keyof Parameters) => {
    const share = (errors[name] ?? 0) / parameters[name];
    return share > 0 ? rounded(Math.min(ERROR_MAX, share)) : 0;
  };
  const starts = runStarts(evidence);
  const deviations = runs.map((inside, r) => ({
    ...firstTokenDeviation(evidence, outcome, parameters, starts[r]!, starts[r + 1] ?? Infinity),
    level: levels[r]! + (left[r]! - common) / answers[r]!,
    levelError: batchError(inside.map((w) => pooled[w]!)) / answers[r]!,
  }));
  const wander = robustSpread(runs.flatMap((inside, r) => inside.map((w) => pooled[w]! - left[r]!)));
  const within = meanOf(deviations.map(({ levelError }) => levelError ** 2).filter(Number.isFinite));
  return {
    windowMicros,
    windows,
    levelError: rounded(Math.min(ERROR_MAX, Math.sqrt(within / runs.length))),
    batchError: tiltOf(filled, pooled, grid, parameters),
    delayError: shareOf("delayMicros"),
    prefillError: shareOf("perPrefillTokenMicros"),
    ...noise,
    ...(betweenRuns && { betweenRuns: betweenRunsOf(deviations, betweenRuns, wander) }),
    ...(Number.isFinite(heldOutError) && { heldOutError: rounded(heldOutError) }),
  };
}

/** Standard deviation of normal values of the same median distance from their median: stalls do not count. */
export function robustSpread(values: readonly number[]): number {
  const middle = median(values);
  return NORMAL_PER_MEDIAN_DISTANCE * median(values.map((value) => Math.abs(value - middle)));
}

/** What is not known of longer steps of larger batches; the step of the usual batch stays as it is. */
function tiltOf(
  filled: readonly number[],
  pooled: readonly number[],
  { observed, windowMicros }: StepWindows,
  { baseMicros, perDecodeMicros }: Parameters,
) {
  const decodes = filled.map((w) => totalOf(observed, w) / windowMicros / observed.length);
  const usual = meanOf(decodes);
  const values = filled.map((w) => pooled[w]!);
  const perDecode = slopeError(values, decodes) * (baseMicros + usual * perDecodeMicros);
  return { decodes: rounded(usual), perDecodeMicros: rounded(perDecode) };
}

/** Batches of neighbours, about as many as each is long, between 4 and 16. */
function batchesOf(count: number): readonly (readonly [from: number, to: number])[] {
  const batches = Math.min(16, Math.max(4, Math.floor(Math.sqrt(count))));
  return Array.from({ length: batches }, (_, b) => [
    Math.floor((b * count) / batches),
    Math.floor(((b + 1) * count) / batches),
  ]);
}

/** So many times a standard error from few batches hold 90 % of what a normal one would: Student's t over the normal. */
export function fewBatches(batches: number): number {
  return 1 + 1.2 / (batches - 1);
}

/** Standard error of the mean of dependent values: that of the means of batches of neighbours. */
export function batchError(values: readonly number[]): number {
  const means = batchesOf(values.length).flatMap(([from, to]) => (to > from ? [meanOf(values.slice(from, to))] : []));
  const centre = meanOf(means);
  const squares = means.reduce((sum, one) => sum + (one - centre) ** 2, 0);
  return fewBatches(means.length) * Math.sqrt(squares / (means.length - 1) / means.length);
}

/**
 * How well the windows separate longer steps of larger batches from longer steps: the standard error of the slope of
 * their logarithms by the answers under way, by leaving out a batch of neighbours at a time (the jackknife).
 */
function slopeError(values: readonly number[], decodes: readonly number[]): number {
  const slopes = batchesOf(values.length).map(([from, to]) => {
    const kept = (_: number, i: number) => i < from || i >= to;
    return slopeOf(decodes.filter(kept), values.filter(kept));
  });
  const centre = meanOf(slopes);
  const squares = slopes.reduce((sum, one) => sum + (one - centre) ** 2, 0);
  return fewBatches(slopes.length) * Math.sqrt(((slopes.length - 1) / slopes.length) * squares);
}

function slopeOf(x: readonly number[], y: readonly number[]): number {
  const [meanX, meanY] = [meanOf(x), meanOf(y)];
  let [xy, xx] = [0, 0];
  x.forEach((value, i) => {
    xy += (value - meanX) * (y[i]! - meanY);
    xx += (value - meanX) ** 2;
  });
  return xx > 0 ? xy / xx : 0;
}

function rounded(value: number): number {
  return Math.round(value * 1e5) / 1e5;
}
