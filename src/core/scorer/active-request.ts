import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers endpoints with few of our own requests in flight, scaled by the busiest candidate.
 *
 *     score = 1 where count <= idleThreshold, else (max - count) / max * maxBusyScore
 */
export const activeRequest = scorerPlugin({
  summary: "our requests in flight there, scaled by the busiest candidate",
  reads: ["ledger"],
  source: "llm-d active-request-scorer",
  parameters: {
    idleThreshold: { type: "integer", default: 0, min: 0, meaning: "requests up to which an endpoint counts as idle" },
    maxBusyScore: { type: "number", default: 1, min: 0, max: 1, meaning: "the most that a busy endpoint can score" },
  },
  create: (name, { idleThreshold, maxBusyScore }) => ({
    name,
    score(_request, candidates, scores) {
      let max = 0;
      for (const candidate of candidates) max = Math.max(max, candidate.requestsInFlight);
      for (let i = 0; i < candidates.length; i++) {
        const count = candidates[i]!.requestsInFlight;
        scores[i] = count <= idleThreshold ? 1 : ((max - count) / max) * maxBusyScore;
      }
    },
  }),
});
