/** How often each, the most frequent first. */
export function counted(names: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts]
    .sort((a, b) => b[1] - a[1])
    .map(([name, times]) => `${name} ${times}`)
    .join(", ");
}

/** Percent: the middle and the ends. */
export function range(shares: readonly number[]): string {
  const sorted = shares.map((share) => 100 * share).sort((a, b) => a - b);
  if (sorted.every((share) => share === 0)) return "-";
  const [low, middle, high] = [0, sorted.length >> 1, sorted.length - 1].map((i) => sorted[i]!.toFixed(0));
  return `${middle} (${low} to ${high})`;
}
