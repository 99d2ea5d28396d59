import type { Random } from "#core/base/random.ts";

/** Standard normal (G. E. P. Box and M. E. Muller, 1958). */
export function normal(random: Random): number {
  const radius = Math.sqrt(-2 * Math.log(1 - random.next()));
  return radius * Math.cos(2 * Math.PI * random.next());
}
