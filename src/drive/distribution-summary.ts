import { percentile } from "#core/base/quantile.ts";
/** Of a set of values, in their own unit. All null when there were none. */
export interface DistributionSummary {
  readonly count: number;
  readonly mean: number | null;
  readonly p50: number | null;
  readonly p90: number | null;
  readonly p99: number | null;
  readonly max: number | null;
}

/** Values that are NaN did not happen and are left out. */
export function summarize(values: Iterable<number>): DistributionSummary {
  const sorted = Float64Array.from(Array.from(values).filter((value) => !Number.isNaN(value))).sort();
  if (sorted.length === 0) return { count: 0, mean: null, p50: null, p90: null, p99: null, max: null };
  let sum = 0;
  for (const value of sorted) sum += value;
  return {
    count: sorted.length,
    mean: sum / sorted.length,
    p50: percentile(sorted, 50),
    p90: percentile(sorted, 90),
    p99: percentile(sorted, 99),
    max: sorted[sorted.length - 1] ?? null,
  };
}
