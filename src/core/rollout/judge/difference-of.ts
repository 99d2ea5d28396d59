import { evidence, type MeanEstimate, priorFor, reach } from "./confidence-sequence.ts";
import { clustersNeeded } from "./clusters-needed.ts";
import type { Design } from "../plan/rollout-plan.ts";
import type { Difference } from "./verdict.ts";

/** The interval of a figure from its estimate as measured, and from what is left of it without what predictions explain. */
export function differenceOf(
  about: Pick<Difference, "arm" | "metric" | "figure">,
  [plain, adjusted]: readonly [MeanEstimate, MeanEstimate],
  { design, level, plannedCount }: { readonly design: Design; readonly level: number; readonly plannedCount: number },
): Difference {
  const prior = priorFor(plannedCount, level);
  const enough = adjusted.degrees + 1 >= clustersNeeded(design, about.figure, plain.skewness);
  const half = enough ? reach(adjusted, level, prior) : Infinity;
  const variance = plain.deviation ** 2 / plain.count;
  return {
    ...about,
    count: plain.count,
    mean: adjusted.mean,
    low: Number.isFinite(half) ? adjusted.mean - half : -Infinity,
    high: Number.isFinite(half) ? adjusted.mean + half : Infinity,
    deviation: adjusted.deviation,
    evidence: enough ? evidence(adjusted, prior) : 1,
    varianceLeft: variance > 0 ? adjusted.deviation ** 2 / adjusted.count / variance : 1,
  };
}
