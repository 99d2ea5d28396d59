import Table from "cli-table3";
import { percentile } from "#core/base/quantile.ts";

/** A predicted distribution beside the real one, request by request. */
export interface Comparison {
  readonly name: string;
  readonly real: readonly number[];
  readonly predicted: readonly number[];
}

/** Mean and percentiles with their error, mean absolute error in per cent per request, and Pearson's r. */
export function printComparisons(comparisons: readonly Comparison[]): void {
  const table = new Table({
    head: ["", "real mean ms", "mean", "p50", "p90", "p99", "MAPE", "r"],
    style: { head: [], border: [], compact: true },
  });
  for (const comparison of comparisons) {
    const { name, real, predicted } = comparison;
    const [ascending, ascendingReal] = [Float64Array.from(predicted).sort(), Float64Array.from(real).sort()];
    const at = (p: number) => signed(percentile(ascending, p) / percentile(ascendingReal, p) - 1);
    table.push([
      name,
      mean(real).toFixed(1),
      signed(meanError(comparison)),
      at(50),
      at(90),
      at(99),
      `${(100 * meanAbsoluteError(comparison)).toFixed(2)} %`,
      correlation(real, predicted).toFixed(4),
    ]);
  }
  console.log(table.toString());
}

export function meanError({ real, predicted }: Comparison): number {
  return mean(predicted) / mean(real) - 1;
}

export function meanAbsoluteError({ real, predicted }: Comparison): number {
  return mean(real.map((value, i) => Math.abs((predicted[i] ?? 0) - value) / value));
}

/** Prints whether a figure is within its bound, and makes the process fail if it is not. */
export function judge(what: string, value: number, within: boolean, bound: string): void {
  console.log(`${within ? "ok  " : "MISS"} ${what}: ${(100 * value).toFixed(2)} % (${bound})`);
  if (!within) process.exitCode = 1;
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function correlation(a: readonly number[], b: readonly number[]): number {
  const [meanA, meanB] = [mean(a), mean(b)];
  const covariance = mean(a.map((value, i) => (value - meanA) * ((b[i] ?? 0) - meanB)));
  const variance = (values: readonly number[], centre: number) => mean(values.map((value) => (value - centre) ** 2));
  return covariance / Math.sqrt(variance(a, meanA) * variance(b, meanB));
}

function signed(ratio: number): string {
  return `${ratio >= 0 ? "+" : ""}${(100 * ratio).toFixed(2)} %`;
}
