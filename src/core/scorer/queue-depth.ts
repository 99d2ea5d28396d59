import { lowerIsBetter } from "./min-max.ts";
import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers the least loaded endpoint, by where it stands between the extremes.
 *
 *     score = (max - load) / (max - min), 1 where all are equal
 */
export const queueDepth = scorerPlugin({
  summary:
    "effective load (requests there, not the queue alone), scaled between the least and the most loaded candidate",
  reads: ["ledger", "scrape:load"],
  source: "BLIS, Composable Scorer Framework",
  parameters: {},
  create: (name) => ({
    name,
    score(_request, candidates, scores) {
      for (let i = 0; i < candidates.length; i++) scores[i] = candidates[i]!.effectiveLoad;
      lowerIsBetter(scores, candidates.length);
    },
  }),
});
