/**
 * Turns costs into scores in place.
 *
 *     score = (max - cost) / (max - min), 1 where all are equal
 */
export function lowerIsBetter(costs: Float64Array, count: number): void {
  let min = Infinity;
  let max = -Infinity;
  for (let i = 0; i < count; i++) {
    min = Math.min(min, costs[i]!);
    max = Math.max(max, costs[i]!);
  }
  for (let i = 0; i < count; i++) costs[i] = max === min ? 1 : (max - costs[i]!) / (max - min);
}
