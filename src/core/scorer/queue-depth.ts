import { scorerPlugin } from "../profile/plugin.ts";

/**
 * Prefers the least loaded endpoint, by where it stands between the extremes.
 *
 *     score = (max - load) / (max - min), 1 where all are equal
 */
export const queueDepth = scorerPlugin({
  summary: "requests there, scaled between the least and the most loaded candidate",
  reads: ["ledger", "scrape:load"],
  source: "requirements 000 §6; llm-d queue-scorer",
  parameters: {},
  create: (name) => ({
    name,
    score(_request, candidates, scores) {
      let min = Infinity;
      let max = -Infinity;
      for (const candidate of candidates) {
        min = Math.min(min, candidate.effectiveLoad);
        max = Math.max(max, candidate.effectiveLoad);
      }
      for (let i = 0; i < candidates.length; i++) {
        scores[i] = max === min ? 1 : (max - candidates[i]!.effectiveLoad) / (max - min);
      }
    },
  }),
});
