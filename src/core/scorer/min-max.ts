import { ABSTAIN } from "./scorer.ts";

/**
 * Turns costs into scores in place.
 *
 *     score = (max - cost) / (max - min), 1 where all are equal
 *
 * A cost that is unknown (NaN) has no part in the range and becomes ABSTAIN.
 */
export function lowerIsBetter(costs: Float64Array, count: number): void {
  let min = Infinity;
  let max = -Infinity;
  for (let i = 0; i < count; i++) {
    const cost = costs[i]!;
    if (cost < min) min = cost;
    if (cost > max) max = cost;
  }
  for (let i = 0; i < count; i++) {
    if (Number.isNaN(costs[i])) costs[i] = ABSTAIN;
    else costs[i] = max === min ? 1 : (max - costs[i]!) / (max - min);
  }
}
