import { evidence, type MeanEstimate, priorFor, reach } from "./confidence-sequence.ts";
import type { Difference } from "./verdict.ts";

/** The interval of a figure from its estimate as measured, and from what is left of it without what predictions explain. */
export function differenceOf(
  about: Pick<Difference, "arm" | "metric" | "figure">,
  [plain, adjusted]: readonly [MeanEstimate, MeanEstimate],
  level: number,
  plannedCount: number,
): Difference {
  const prior = priorFor(plannedCount, level);
  const half = reach(adjusted, level, prior);
  const variance = plain.deviation ** 2 / plain.count;
  return {
    ...about,
    count: plain.count,
    mean: adjusted.mean,
    low: Number.isFinite(half) ? adjusted.mean - half : -Infinity,
    high: Number.isFinite(half) ? adjusted.mean + half : Infinity,
    deviation: adjusted.deviation,
    evidence: evidence(adjusted, prior),
    varianceLeft: variance > 0 ? adjusted.deviation ** 2 / adjusted.count / variance : 1,
  };
}
