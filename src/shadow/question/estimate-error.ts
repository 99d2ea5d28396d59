import type { Distribution } from "#sim/result/distribution.ts";
import type { PredictionError } from "../figure/figures.ts";

/**
 * The error of an estimate where that of the simulation without noise was measured on a part of the requests. What is
 * reported request by request (MAPE, correlation) stays the simulation's.
 */
export function estimateError(
  error: PredictionError | undefined,
  simulated: Distribution | undefined,
  estimate: Distribution | undefined,
): PredictionError | undefined {
  if (error === undefined || simulated === undefined || estimate === undefined) return error;
  const moved = (relative: number, figure: "mean" | "p50" | "p90" | "p99") =>
    simulated[figure] > 0 ? (1 + relative) * (estimate[figure] / simulated[figure]) - 1 : relative;
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
