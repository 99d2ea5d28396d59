import { waitingRequests } from "../endpoint/gauge.ts";
import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers short queues on an absolute scale, and never gives more than a half.
 *
 *     score = 0.5 * (1 - min(waiting, threshold) / threshold)
 */
export const loadAware = scorerPlugin({
  summary: "half of the share of a queue threshold that is free",
  reads: ["scrape:load", "ledger"],
  source: "llm-d load-aware-scorer",
  parameters: {
    threshold: { type: "number", default: 128, min: 1, meaning: "waiting requests that count as full" },
  },
  create: (name, { threshold }) => ({
    name,
    score(_request, candidates, scores) {
      for (let i = 0; i < candidates.length; i++) {
        scores[i] = 0.5 * (1 - Math.min(waitingRequests(candidates[i]!), threshold) / threshold);
      }
    },
  }),
});
