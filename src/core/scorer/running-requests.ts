import { runningRequests } from "../endpoint/gauge.ts";
import { lowerIsBetter } from "./min-max.ts";
import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers the smallest running batch.
 *
 *     score = (max - running) / (max - min), 1 where all are equal
 */
export const runningRequestsScorer = scorerPlugin({
  summary: "requests in the batch there, scaled between the candidates",
  reads: ["scrape:load", "ledger"],
  source: "llm-d running-requests-size-scorer",
  parameters: {},
  create: (name) => ({
    name,
    score(_request, candidates, scores) {
      for (let i = 0; i < candidates.length; i++) scores[i] = runningRequests(candidates[i]!);
      lowerIsBetter(scores, candidates.length);
    },
  }),
});
