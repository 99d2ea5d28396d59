import type { StepResiduals } from "#engine/step-drift.ts";
import { meanOf } from "../figure/mean-of.ts";

/**
 * Logarithm of how many times as long as fitted steps usually are: what a robust fit leaves out of their mean, and the part
 * of the time that stalls take.
 */
export function usualLevel({ windows, stalls }: Pick<StepResiduals, "windows" | "stalls">): number {
  const factors = windows.flatMap((logs) => logs.map(Math.exp));
  const stalled = stalls === undefined || stalls.count === 0 ? 0 : stalls.count * meanOf(stalls.micros);
  return Math.log(factors.length === 0 ? 1 : meanOf(factors)) + Math.log(1 + stalled / (stalls?.watchedMicros ?? 1));
}
