import { percentile } from "#core/base/quantile.ts";
import { type Distribution, distribution } from "#sim/result/distribution.ts";
import { meanOf } from "./mean-of.ts";

/** How far a prediction is from what happened, over the same requests. */
export interface PredictionError {
  readonly pairs: number;
  readonly predictedMean: number;
  readonly observedMean: number;
  /** predicted mean / observed mean - 1 */
  readonly meanRelative: number;
  readonly p50Relative: number;
  readonly p90Relative: number;
  readonly p99Relative: number;
  /**
   * Mean of |predicted - observed| / observed, request by request. Less than a tenth of the median observed counts as
   * that: what came in one burst is not how long an engine took, and must not outweigh all others.
   */
  readonly mape: number;
  /** Median of the same. */
  readonly medianApe: number;
  /** Mean of |predicted - observed| / the larger of the two, in [0, 1]: no request outweighs another. */
  readonly boundedError: number;
  /** Pearson's r; NaN where either side does not vary. */
  readonly correlation: number;
}

/** How far predictions are off, request by request, over those with both values; undefined where there are none. */
export function predictionError(predicted: Float64Array, observed: Float64Array): PredictionError | undefined {
  const pairs: [number, number][] = [];
  for (let i = 0; i < predicted.length; i++) {
    if (predicted[i]! >= 0 && observed[i]! > 0) pairs.push([predicted[i]!, observed[i]!]);
  }
  const p = figuresOf(Float64Array.from(pairs, ([value]) => value));
  const o = figuresOf(Float64Array.from(pairs, ([, value]) => value));
  if (p === undefined || o === undefined) return undefined;
  const floor = FLOOR_SHARE * o.p50;
  const errors = Float64Array.from(pairs, ([a, b]) => Math.abs(a - b) / Math.max(b, floor));
  return {
    pairs: pairs.length,
    predictedMean: p.mean,
    observedMean: o.mean,
    meanRelative: p.mean / o.mean - 1,
    p50Relative: p.p50 / o.p50 - 1,
    p90Relative: p.p90 / o.p90 - 1,
    p99Relative: p.p99 / o.p99 - 1,
    mape: meanOf(errors),
    medianApe: percentile(errors.sort(), 50),
    boundedError: meanOf(Float64Array.from(pairs, ([a, b]) => Math.abs(a - b) / Math.max(a, b))),
    correlation: pearson(pairs, p.mean, o.mean),
  };
}

/** Part of the median observed below which a time is not taken for an engine's. */
const FLOOR_SHARE = 0.1;

/** Distribution of the values that are numbers. */
export function figuresOf(values: Float64Array): Distribution | undefined {
  return distribution(values.filter((value) => !Number.isNaN(value)));
}

function pearson(pairs: readonly (readonly [number, number])[], meanA: number, meanB: number): number {
  let ab = 0;
  let aa = 0;
  let bb = 0;
  for (const [a, b] of pairs) {
    ab += (a - meanA) * (b - meanB);
    aa += (a - meanA) ** 2;
    bb += (b - meanB) ** 2;
  }
  return ab / Math.sqrt(aa * bb);
}
