/** Apart by more than any test draws. */
const APART = 1_000_003;
const SEEDS = 0x7fff_ffff;

/** So many seeds of cases that a test draws itself: the same in every run, others with TEST_PROPERTY_SEED. */
export function drawnSeeds(count: number, first = 1): number[] {
  const from = first + ((Number(process.env["TEST_PROPERTY_SEED"] ?? 0) * APART) % SEEDS);
  return Array.from({ length: count }, (_, i) => from + i);
}

/** One of them. */
export function drawnSeed(fixed: number): number {
  return drawnSeeds(1, fixed)[0]!;
}
