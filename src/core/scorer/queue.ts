import { waitingRequests } from "../endpoint/gauge.ts";
import { lowerIsBetter } from "./min-max.ts";
import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers the shortest waiting queue.
 *
 *     score = (max - waiting) / (max - min), 1 where all are equal
 */
export const queue = scorerPlugin({
  summary: "requests that wait there, scaled between the candidates",
  reads: ["scrape:load", "ledger"],
  source: "llm-d queue-scorer",
  parameters: {},
  create: (name) => ({
    name,
    score(_request, candidates, scores) {
      for (let i = 0; i < candidates.length; i++) scores[i] = waitingRequests(candidates[i]!);
      lowerIsBetter(scores, candidates.length);
    },
  }),
});
