import { newTokens } from "../endpoint/gauge.ts";
import { scorerPlugin } from "../profile/plugin.ts";
import { lowerIsBetter } from "./min-max.ts";

/**
 * Prefers the endpoint with the least prefill and decode work, in blocks.
 *
 *     cost = overlapWeight * (queued prefill tokens + new tokens) / block + decode tokens / block
 *
 * scaled between the candidates, so that a softmax picker sees the same range whatever the load.
 */
export const dynamoCost = scorerPlugin({
  summary: "prefill blocks to compute plus decode blocks held, scaled between the candidates",
  reads: ["ledger", "prefix-index"],
  source: "NVIDIA Dynamo KV router",
  parameters: {
    overlapWeight: { type: "number", default: 1, min: 0, meaning: "weight of prefill work against decode work" },
  },
  create: (name, { overlapWeight }) => ({
    name,
    score({ promptTokens, blocks }, candidates, scores) {
      for (let i = 0; i < candidates.length; i++) {
        const candidate = candidates[i]!;
        const prefill = candidate.prefillTokensQueued + newTokens(candidate, promptTokens);
        scores[i] = (overlapWeight * prefill + candidate.decodeTokens) / blocks.blockTokens;
      }
      lowerIsBetter(scores, candidates.length);
    },
  }),
});
