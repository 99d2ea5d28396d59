import { lowerIsBetter } from "./min-max.ts";
import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers the endpoint with the fewest of our own requests in flight.
 *
 *     score = (max - count) / (max - min), 1 where all are equal
 */
export const leastRequest = scorerPlugin({
  summary: "our requests in flight there, scaled between the candidates",
  reads: ["ledger"],
  source: "AIBrix least-request; B3 load_only",
  parameters: {},
  create: (name) => ({
    name,
    score(_request, candidates, scores) {
      for (let i = 0; i < candidates.length; i++) scores[i] = candidates[i]!.requestsInFlight;
      lowerIsBetter(scores, candidates.length);
    },
  }),
});
