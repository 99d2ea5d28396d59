import type { BetweenRuns, StepDrift, StepResiduals } from "#engine/step-drift.ts";
import { betweenRunsOf } from "../recorded/between-runs.ts";
import { type Evidence, tpotOf } from "./evidence.ts";
import { firstTokenDeviation, firstTokenResidualsOf } from "./first-token-residuals.ts";
import type { ForcedOutcome } from "./forced-replay.ts";
import type { Parameters } from "./parameters.ts";
import { stallsOf } from "./stalls.ts";

/** Windows of a run and of all runs at most, and endpoints whose own are kept. The first ones stand for the others. */
const WINDOWS_MAX = 128;
const WINDOWS_ALL_MAX = 1024;
const ENDPOINTS_MAX = 8;
const WINDOW_MICROS_MIN = 1_000_000;
/** Fewer windows show nothing of a drift. */
const WINDOWS_MIN = 8;
/**
 * A request's ratio counts no further than this, a factor of 4.5 either way: beyond, its tokens came in one go after a
 * stall or stood still in a socket, which is no step's doing. Half of what an engine file may hold.
 */
const RATIO_MAX = 4.5;
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
  /** The replay on engines that drift so. */
  readonly replayed: (drift: StepDrift) => ForcedOutcome;
}

/**
 * How far steps were from the model's over time: the observed over the replayed time of the answers that were under way,
 * each for as much of a window as it was, in logarithms. A window's value holds what many steps have in common, which is
 * what moves means; the noise of single steps averages out, and stalls of the machine stand apart. What the windows have
 * in common stays in them: a robust fit leaves out what is rare and long. The level's error is that of the mean of
 * dependent windows (by batches). Undefined where a trace is too short.
 */
export function stepResidualsOf(
  evidence: Evidence,
  outcome: ForcedOutcome,
  facts: FitFacts,
): StepResiduals | undefined {
  const stalls = stallsOf(evidence, outcome);
  const grid = gridOf(evidence, outcome, stalls.decodeMicros);
  if (grid === undefined) return undefined;
  const { windowMicros, observed, predicted } = grid;
  const pooled = pooledOf(grid);
  // A window in which nothing was answered anywhere carries no evidence: time goes on without it.
  const filled = pooled.flatMap((value, w) => (Number.isNaN(value) ? [] : [w]));
  if (filled.length < WINDOWS_MIN) return undefined;
  const level = mean(filled.map((w) => pooled[w]!));
  const runs = runsOf(evidence).map((from, r, all): RunWindows => {
    const inside = filled.filter((w) => w * windowMicros >= from && w * windowMicros < (all[r + 1] ?? Infinity));
    return { from, until: all[r + 1] ?? Infinity, level: mean(inside.map((w) => pooled[w]!)), inside };
  });
  const centred = new Map(runs.flatMap((run) => run.inside.map((w) => [w, run.level - level] as const)));
  const windows = observed.map((micros, e) =>
    filled.map((w) => {
      const own = predicted[e]![w]! > 0 ? Math.log(micros[w]! / predicted[e]![w]!) : pooled[w]!;
      return rounded(own - (centred.get(w) ?? 0));
    }),
  );
  const { parameters, errors, heldOutError, betweenRuns, replayed } = facts;
  const shareOf = (name: keyof Parameters) => {
    const share = (errors[name] ?? 0) / parameters[name];
    return share > 0 ? rounded(Math.min(ERROR_MAX, share)) : 0;
  };
  const answers = answersOf(runs, level, grid, (drift) => {
    const again = gridOf(evidence, replayed(drift), stalls.decodeMicros);
    return again === undefined ? pooled : pooledOf(again);
  });
  const deviations = runs.map(({ from, until, level: own, inside }, r) => ({
    ...firstTokenDeviation(evidence, outcome, parameters, from, until),
    level: own - level,
    levelError: batchError(inside.map((w) => pooled[w]!)),
    answer: answers[r]!,
  }));
  const wander = robustSpread(runs.flatMap((run) => run.inside.map((w) => pooled[w]! - run.level)));
  const within = mean(deviations.map(({ levelError }) => levelError ** 2).filter(Number.isFinite));
  return {
    windowMicros,
    windows,
    levelError: rounded(Math.min(ERROR_MAX, Math.sqrt(within / runs.length))),
    batchError: tiltOf(filled, pooled, grid, parameters),
    delayError: shareOf("delayMicros"),
    prefillError: shareOf("perPrefillTokenMicros"),
    firstTokens: firstTokenResidualsOf(evidence, outcome, stalls.firstMicros),
    stalls: stalls.seen,
    ...(betweenRuns && { betweenRuns: betweenRunsOf(deviations, betweenRuns, wander) }),
    ...(Number.isFinite(heldOutError) && { heldOutError: rounded(heldOutError) }),
  };
}

/** Standard deviation of normal values of the same median distance from their median: stalls do not count. */
function robustSpread(values: readonly number[]): number {
  const middle = median(values);
  return NORMAL_PER_MEDIAN_DISTANCE * median(values.map((value) => Math.abs(value - middle)));
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}

/** A run in the grid of all, with the mean of its windows. */
interface RunWindows {
  readonly from: number;
  readonly until: number;
  readonly level: number;
  readonly inside: readonly number[];
}

/** Runs that are nearer to all of them than this, as a logarithm, show nothing of their answer. */
const APART_MIN = 0.005;
const ANSWER_MAX = 4;

/**
 * How much longer the time per token of each run is, for steps that are a little longer: near saturation more than that,
 * since batches grow with them. By a replay in which each run's steps are as much longer as its tokens were.
 */
function answersOf(
  runs: readonly RunWindows[],
  level: number,
  { windowMicros, count }: Grid,
  pooledWith: (drift: StepDrift) => readonly number[],
): number[] {
  if (runs.length < 2) return runs.map(() => 1);
  const factors = new Float64Array(count).fill(1);
  for (const run of runs) {
    const until = Math.min(count, Math.ceil(run.until / windowMicros));
    factors.fill(Math.exp(run.level - level), Math.floor(run.from / windowMicros), until);
  }
  const pooled = pooledWith({ windowMicros, factors });
  return runs.map((run) => {
    const apart = run.level - level;
    const answer = (run.level - mean(run.inside.map((w) => pooled[w]!))) / apart;
    return Math.abs(apart) < APART_MIN || !(answer > 1) ? 1 : Math.min(ANSWER_MAX, answer);
  });
}

/** What is not known of longer steps of larger batches; the step of the usual batch stays as it is. */
function tiltOf(
  filled: readonly number[],
  pooled: readonly number[],
  { observed, windowMicros }: Grid,
  { baseMicros, perDecodeMicros }: Parameters,
) {
  const decodes = filled.map((w) => totalOf(observed, w) / windowMicros / observed.length);
  const usual = mean(decodes);
  const values = filled.map((w) => pooled[w]!);
  const perDecode = slopeError(values, decodes) * (baseMicros + usual * perDecodeMicros);
  return { decodes: rounded(usual), perDecodeMicros: rounded(perDecode) };
}

interface Grid {
  readonly windowMicros: number;
  readonly count: number;
  /** Per endpoint and window: time that answers were under way, and what the replay has for the same tokens. */
  readonly observed: readonly Float64Array[];
  readonly predicted: readonly Float64Array[];
}

function gridOf(evidence: Evidence, outcome: ForcedOutcome, stalledMicros: Float64Array): Grid | undefined {
  const { endpoints, rows } = evidence;
  let until = 0;
  for (const { ok, arrivalAt, e2eMicros } of rows) if (ok) until = Math.max(until, arrivalAt + e2eMicros);
  if (until === 0) return undefined;
  const windowsMax = Math.min(WINDOWS_ALL_MAX, WINDOWS_MAX * runsOf(evidence).length);
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

/** Observed over predicted time per token, without what the machine stood still. */
function ratioOf(row: Evidence["rows"][number], predicted: number, stalledMicros: number): number {
  const observed = row.ok ? tpotOf(row) - stalledMicros / (row.outputTokens - 1) : NaN;
  if (!(observed > 0 && predicted > 0)) return NaN;
  return Math.min(RATIO_MAX, Math.max(1 / RATIO_MAX, observed / predicted));
}

/** Of all endpoints together, window by window; NaN where nothing was answered. */
function pooledOf({ observed, predicted, count }: Grid): number[] {
  return Array.from({ length: count }, (_, w) => Math.log(totalOf(observed, w) / totalOf(predicted, w)));
}

function totalOf(columns: readonly Float64Array[], w: number): number {
  return columns.reduce((sum, column) => sum + column[w]!, 0);
}

/** When each run begins on the evidence's clock. */
function runsOf({ laterRunsAt = [] }: Evidence): readonly number[] {
  return [0, ...laterRunsAt];
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
function fewBatches(batches: number): number {
  return 1 + 1.2 / (batches - 1);
}

/** Standard error of the mean of dependent values: that of the means of batches of neighbours. */
function batchError(values: readonly number[]): number {
  const means = batchesOf(values.length).flatMap(([from, to]) => (to > from ? [mean(values.slice(from, to))] : []));
  const centre = mean(means);
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
  const centre = mean(slopes);
  const squares = slopes.reduce((sum, one) => sum + (one - centre) ** 2, 0);
  return fewBatches(slopes.length) * Math.sqrt(((slopes.length - 1) / slopes.length) * squares);
}

function slopeOf(x: readonly number[], y: readonly number[]): number {
  const [meanX, meanY] = [mean(x), mean(y)];
  let [xy, xx] = [0, 0];
  x.forEach((value, i) => {
    xy += (value - meanX) * (y[i]! - meanY);
    xx += (value - meanX) ** 2;
  });
  return xx > 0 ? xy / xx : 0;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function rounded(value: number): number {
  return Math.round(value * 1e5) / 1e5;
}
