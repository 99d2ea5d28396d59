import { evidence, type MeanEstimate, priorFor, reach } from "./confidence-sequence.ts";
import { clustersNeeded } from "./clusters-needed.ts";
import type { Design } from "../plan/rollout-plan.ts";
import type { QuantileDifference } from "./quantile-difference.ts";
import type { Difference } from "./verdict.ts";

type About = Pick<Difference, "arm" | "metric" | "figure">;

interface DifferenceRules {
  readonly design: Design;
  /** That this figure has. */
  readonly level: number;
  readonly plannedCount: number;
}

/**
 * Whether arms can be compared at all. Each pool is one queue, and its keys stay with it: two pools are two values however
 * long they run, and what they differ by is not the arm's for sure; unless keys are drawn anew in each window.
 */
function isComparable(design: Design): boolean {
  return design.kind === "pools" ? design.redrawn === true : design.kind !== "shadow";
}

/** The interval of a figure from its estimate as measured, and from what is left of it without what predictions explain. */
export function differenceOf(
  about: About,
  [plain, adjusted]: readonly [MeanEstimate, MeanEstimate],
  { design, level, plannedCount }: DifferenceRules,
): Difference {
  const prior = priorFor(plannedCount, level);
  const enough = isComparable(design) && adjusted.degrees + 1 >= clustersNeeded(design, about.figure, plain.skewness);
  const half = enough ? reach(adjusted, level, prior) : Infinity;
  const variance = plain.deviation ** 2 / plain.count;
  return {
    ...about,
    count: plain.count,
    mean: adjusted.mean,
    ...intervalOf(adjusted.mean, half, half),
    deviation: adjusted.deviation,
    evidence: enough ? evidence(adjusted, prior) : 1,
    level,
    varianceLeft: variance > 0 ? adjusted.deviation ** 2 / adjusted.count / variance : 1,
  };
}

/** The same of a quantile that clusters are compared by. */
export function quantileDifferenceOf(about: About, found: QuantileDifference, rules: DifferenceRules): Difference {
  const { count, mean, below, above, degrees, deviation } = found;
  const { level, plannedCount, design } = rules;
  const enough = degrees + 1 >= clustersNeeded(design, about.figure);
  const { low, high } = enough ? intervalOf(mean, below, above) : intervalOf(mean, Infinity, Infinity);
  const prior = priorFor(plannedCount, level);
  // Of the side that faces 0, which is what the evidence is against.
  const wide = reach({ count, mean: 0, deviation: 1, degrees }, level, prior);
  const facing = { count, mean, degrees, deviation: (mean > 0 ? below : above) / wide };
  const sure = enough && Number.isFinite(facing.deviation) ? evidence(facing, prior) : 1;
  return { ...about, count, mean, low, high, deviation, evidence: sure, level, varianceLeft: 1 };
}

function intervalOf(mean: number, below: number, above: number): { readonly low: number; readonly high: number } {
  return {
    low: Number.isFinite(below) ? mean - below : -Infinity,
    high: Number.isFinite(above) ? mean + above : Infinity,
  };
}
