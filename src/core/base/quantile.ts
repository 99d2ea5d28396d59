/** The value below which that share of them lies, one of them, whatever their order; NaN of none. */
export function quantile(values: readonly number[] | Float64Array, share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
}

/** The middle value, or the mean of the two; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const [below = NaN, above = NaN] = [sorted[sorted.length % 2 === 1 ? middle : middle - 1], sorted[middle]];
  return (below + above) / 2;
}

/**
 * Percentile p in [0, 100] of ascending values, interpolated linearly between the closest ranks (type 7 of R. J.
 * Hyndman and Y. Fan, 1996; numpy's default, which vLLM's own benchmarks report).
 */
export function percentile(ascending: Float64Array, p: number): number {
  const rank = (p / 100) * (ascending.length - 1);
  const below = Math.floor(rank);
  const low = ascending[below] ?? NaN;
  const high = ascending[Math.min(below + 1, ascending.length - 1)] ?? NaN;
  return low + (high - low) * (rank - below);
}
