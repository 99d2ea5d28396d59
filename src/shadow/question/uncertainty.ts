import type { Distribution } from "#sim/result/distribution.ts";
import type { PredictionError } from "../figure/figures.ts";
import { type Interval, predictionInterval } from "../figure/interval.ts";
import type { ReplicaFigures } from "../job/job.ts";
import type { Metric } from "../figure/metric.ts";
import type { PairedDifference } from "../figure/paired.ts";

export const FIGURES = ["mean", "p50", "p99"] as const;
export type Figure = (typeof FIGURES)[number];

/** `expected` is the prediction itself: see estimateOf. */
export interface FigureInterval extends Interval {
  readonly expected: number;
}
export type FigureIntervals = Readonly<Record<Figure, FigureInterval>>;

/** What was observed over what was predicted for the same requests, and where that was to be. */
export interface CoveredFigure extends Interval {
  readonly observed: number;
  readonly inside: boolean;
}
export type Coverage = Readonly<Record<Figure, CoveredFigure>>;

/** The 90 % prediction intervals of a metric's figures; undefined where replicas give none. */
export function figureIntervals(
  predicted: Distribution | undefined,
  replicas: readonly ReplicaFigures[],
  metric: Metric,
): FigureIntervals | undefined {
  if (predicted === undefined) return undefined;
  const drawn = replicas.flatMap(({ figures }) => figures[metric] ?? []);
  const of = (figure: Figure): FigureInterval | undefined => {
    const values = drawn.map((one) => one[figure]);
    const interval = predictionInterval(predicted[figure], values, "logarithm");
    return interval && { ...interval, expected: predicted[figure] };
  };
  const [mean, p50, p99] = [of("mean"), of("p50"), of("p99")];
  return mean && p50 && p99 && { mean, p50, p99 };
}

/** Of the mean difference between two candidates that met the same replicas. */
export function differenceInterval(
  difference: number | undefined,
  candidate: readonly ReplicaFigures[],
  base: readonly ReplicaFigures[],
  metric: Metric,
): Interval | undefined {
  if (difference === undefined) return undefined;
  const means = meanDifferences(candidate, base, metric);
  return predictionInterval(difference, means, "linear");
}

/** Of the means, replica by replica: both met the same one. */
function meanDifferences(
  candidate: readonly ReplicaFigures[],
  base: readonly ReplicaFigures[],
  metric: Metric,
): number[] {
  return candidate.flatMap(({ figures }, r) => {
    const [one, other] = [figures[metric]?.mean, base[r]?.figures[metric]?.mean];
    return one === undefined || other === undefined ? [] : [one - other];
  });
}

/**
 * Whether a difference of means is more than chance: neither its interval over requests nor the one over engines, where
 * there is one, holds 0. Undefined without a difference.
 */
export function exceedsNoise(
  difference: PairedDifference | undefined,
  interval: Interval | undefined,
): boolean | undefined {
  if (difference === undefined) return undefined;
  return [difference, ...(interval === undefined ? [] : [interval])].every(({ low, high }) => low > 0 || high < 0);
}

/** Whether what happened lies in the interval, both as ratios to the prediction, since not every request was observed. */
export function coverageOf(
  error: PredictionError | undefined,
  predicted: Distribution | undefined,
  intervals: FigureIntervals | undefined,
): Coverage | undefined {
  if (error === undefined || predicted === undefined || intervals === undefined) return undefined;
  const of = (figure: Figure, relative: number): CoveredFigure => {
    const low = intervals[figure].low / predicted[figure];
    const high = intervals[figure].high / predicted[figure];
    const observed = 1 / (1 + relative);
    return { low, high, observed, inside: observed >= low && observed <= high };
  };
  return {
    mean: of("mean", error.meanRelative),
    p50: of("p50", error.p50Relative),
    p99: of("p99", error.p99Relative),
  };
}
