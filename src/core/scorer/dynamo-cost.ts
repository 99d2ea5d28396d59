import { newTokens } from "../endpoint/gauge.ts";
import { lowerIsBetter } from "./min-max.ts";
import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers the endpoint with the least prefill and decode work.
 *
 *     cost = overlapWeight * (queued prefill tokens + new tokens) + decode tokens
 *
 * scaled between the candidates, so that a softmax picker sees the same range whatever the load, and whatever the block
 * in which Dynamo counts.
 */
export const dynamoCost = scorerPlugin({
  summary: "prefill tokens to compute plus tokens held for decode, scaled between the candidates",
  reads: ["ledger", "prefix-index"],
  source: "NVIDIA Dynamo KV router",
  parameters: {
    overlapWeight: { type: "number", default: 1, min: 0, meaning: "weight of prefill work against decode work" },
  },
  create: (name, { overlapWeight }) => ({
    name,
    score({ promptTokens }, candidates, scores) {
      for (let i = 0; i < candidates.length; i++) {
        const candidate = candidates[i]!;
        const prefill = candidate.prefillTokensQueued + newTokens(candidate, promptTokens);
        scores[i] = overlapWeight * prefill + candidate.decodeTokens;
      }
      lowerIsBetter(scores, candidates.length);
    },
  }),
});
