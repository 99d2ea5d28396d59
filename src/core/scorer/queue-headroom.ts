import { waitingRequests } from "../endpoint/gauge.ts";
import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers short queues on an absolute scale.
 *
 *     score = 1 - min(waiting, full) / full
 */
export const queueHeadroom = scorerPlugin({
  summary: "share of a queue length that is free",
  reads: ["scrape:load", "ledger"],
  source: "Cognitora's code (QUEUE_FULL)",
  parameters: {
    full: { type: "number", default: 64, min: 1, meaning: "waiting requests that count as full" },
  },
  create: (name, { full }) => ({
    name,
    score(_request, candidates, scores) {
      for (let i = 0; i < candidates.length; i++)
        scores[i] = 1 - Math.min(waitingRequests(candidates[i]!), full) / full;
    },
  }),
});
