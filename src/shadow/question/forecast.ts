import type { Distribution } from "#sim/result/distribution.ts";
import type { PredictionError } from "../figure/figures.ts";
import type { ReplicaFigures } from "../job/job.ts";
import type { Metric } from "../figure/metric.ts";
import type { PairedDifference } from "../figure/paired.ts";

/**
 * What is predicted: of each figure the middle of the replicas, so that about half of what may come lies above. The
 * simulation on the engine as it was fitted meets no pause and no slow minute, so that it is too low at the tail and
 * near saturation; the replicas' mean is too high there, since one long queue weighs more than many short ones. The
 * simulation itself where there are no replicas.
 */
export function forecastOf(
  fitted: Distribution | undefined,
  replicas: readonly ReplicaFigures[],
  metric: Metric,
): Distribution | undefined {
  const drawn = replicas.flatMap(({ figures }) => figures[metric] ?? []);
  if (fitted === undefined || drawn.length < 2) return fitted;
  const of = (figure: Exclude<keyof Distribution, "count">) => middleOf(drawn.map((one) => one[figure]));
  return {
    count: fitted.count,
    mean: of("mean"),
    min: of("min"),
    p50: of("p50"),
    p90: of("p90"),
    p95: of("p95"),
    p99: of("p99"),
    max: of("max"),
  };
}

/**
 * The error of a forecast where that of the fitted engine's simulation was measured on a part of the requests. What is
 * reported request by request (MAPE, correlation) stays the simulation's.
 */
export function forecastError(
  error: PredictionError | undefined,
  fitted: Distribution | undefined,
  forecast: Distribution | undefined,
): PredictionError | undefined {
  if (error === undefined || fitted === undefined || forecast === undefined) return error;
  const moved = (relative: number, figure: "mean" | "p50" | "p90" | "p99") =>
    fitted[figure] > 0 ? (1 + relative) * (forecast[figure] / fitted[figure]) - 1 : relative;
  const meanRelative = moved(error.meanRelative, "mean");
  return {
    ...error,
    predictedMean: error.observedMean * (1 + meanRelative),
    meanRelative,
    p50Relative: moved(error.p50Relative, "p50"),
    p90Relative: moved(error.p90Relative, "p90"),
    p99Relative: moved(error.p99Relative, "p99"),
  };
}

/** The mean difference that is forecast, with what is chance over requests around it. */
export function forecastDifference(
  difference: PairedDifference | undefined,
  candidate: readonly ReplicaFigures[],
  base: readonly ReplicaFigures[],
  metric: Metric,
): PairedDifference | undefined {
  const means = meanDifferences(candidate, base, metric);
  if (difference === undefined || means.length < 2) return difference;
  const mean = middleOf(means);
  const moved = mean - difference.mean;
  return { ...difference, mean, low: difference.low + moved, high: difference.high + moved };
}

/** Of the means, replica by replica: both met the same one. */
export function meanDifferences(
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
 * The mean of the middle half, of logarithms where all are above 0: near the median, and less moved by which replicas were
 * drawn. The very value where all are the same.
 */
function middleOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const [least = NaN] = sorted;
  const cut = Math.floor(sorted.length / 4);
  const middle = sorted.slice(cut, sorted.length - cut);
  if (middle[0] === middle.at(-1)) return middle[0]!;
  if (!(least > 0)) return middle.reduce((sum, value) => sum + value, 0) / middle.length;
  return Math.exp(middle.reduce((sum, value) => sum + Math.log(value), 0) / middle.length);
}
