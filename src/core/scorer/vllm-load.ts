import { runningRequests, waitingRequests } from "../endpoint/gauge.ts";
import { lowerIsBetter } from "./min-max.ts";
import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers the endpoint where a weighted queue is shortest, as vLLM balances its own data-parallel ranks.
 *
 *     cost = waitingWeight * waiting + running
 */
export const vllmLoad = scorerPlugin({
  summary: "4 * waiting + running, scaled between the candidates",
  reads: ["scrape:load", "ledger"],
  source: "vLLM's data-parallel load balancing",
  parameters: {
    waitingWeight: { type: "number", default: 4, min: 0, meaning: "what a waiting request counts" },
  },
  create: (name, { waitingWeight }) => ({
    name,
    score(_request, candidates, scores) {
      for (let i = 0; i < candidates.length; i++) {
        scores[i] = waitingWeight * waitingRequests(candidates[i]!) + runningRequests(candidates[i]!);
      }
      lowerIsBetter(scores, candidates.length);
    },
  }),
});
