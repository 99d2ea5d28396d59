import { lowerIsBetter } from "./min-max.ts";
import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers the endpoint with the least KV cache in use.
 *
 *     score = (max - used) / (max - min), 1 where all are equal
 */
export const leastKvCache = scorerPlugin({
  summary: "KV blocks in use there, scaled between the candidates",
  reads: ["scrape:kv", "ledger"],
  source: "AIBrix least-kv-cache, without the CPU cache metric that vLLM no longer has",
  parameters: {},
  create: (name) => ({
    name,
    score(_request, candidates, scores) {
      for (let i = 0; i < candidates.length; i++) scores[i] = candidates[i]!.kvUtilization;
      lowerIsBetter(scores, candidates.length);
    },
  }),
});
