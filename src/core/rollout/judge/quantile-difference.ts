import type { ClusterGroups } from "./cluster-groups.ts";
import { type MeanEstimate, reach } from "./confidence-sequence.ts";
import type { TimeFigure, TimeMetric } from "./outcome.ts";
import { QUANTILES } from "./time-histogram.ts";

/** How far below and above an arm's quantile less the control's the true one may be. */
export interface QuantileDifference extends MeanEstimate {
  readonly below: number;
  readonly above: number;
}

export interface Quantile {
  readonly arm: number;
  readonly metric: TimeMetric;
  readonly figure: Exclude<TimeFigure, "mean">;
}

/**
 * An arm's quantile less the control's, by clusters. A quantile is as sure as the share of requests above it (R. Woodruff,
 * "Confidence intervals for medians and other position measures", 1952), and that share as clusters make it; the two
 * arms' limits are put together by recovered variances (G. Zou and A. Donner, "Construction of confidence limits about
 * effect measures", 2008). `clusters`: of both arms; prior and level as of any mean.
 */
export function quantileDifference(
  groups: ClusterGroups,
  { arm, metric, figure }: Quantile,
  { clusters, level, prior }: { readonly clusters: number; readonly level: number; readonly prior: number },
): QuantileDifference {
  const q = QUANTILES[figure];
  const [control, other] = [0, arm].map((one) => {
    const tally = groups.total(one);
    const value = tally.time(metric, figure);
    const { independent, groups: even } = groups.above(one, metric, value);
    return { tally, value, independent, even };
  });
  const degrees = Math.max(0, Math.min(control!.even, other!.even) - 1);
  // In standard errors.
  const wide = reach({ count: clusters, mean: 0, deviation: Math.sqrt(clusters), degrees }, level, prior);
  const limits = [control!, other!].map(({ tally, value, independent }) => {
    const half = wide * Math.sqrt((q * (1 - q)) / independent);
    // Where the share above is not surely above none nothing is known of the side.
    const low = q - half > 0 ? tally.quantile(metric, q - half) : -Infinity;
    const high = q + half < 1 ? tally.quantile(metric, q + half) : Infinity;
    return { below: value - low, above: high - value };
  });
  const [ofControl, ofOther] = limits as [(typeof limits)[0], (typeof limits)[0]];
  const mean = other!.value - control!.value;
  const below = Math.hypot(ofOther.below, ofControl.above);
  const above = Math.hypot(ofOther.above, ofControl.below);
  const known = Number.isFinite(below) && Number.isFinite(above) && degrees > 0;
  const deviation = known ? ((below + above) / 2 / wide) * Math.sqrt(clusters) : NaN;
  return { count: clusters, mean, deviation, degrees, below, above };
}
