import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers the endpoint with the most free KV cache.
 *
 *     score = 1 - share of KV blocks in use
 */
export const kvUtilization = scorerPlugin({
  summary: "share of the endpoint's KV blocks that is free",
  reads: ["scrape:kv", "ledger"],
  source: "BLIS, Composable Scorer Framework; llm-d kv-cache-utilization-scorer",
  parameters: {},
  create: (name) => ({
    name,
    score(_request, candidates, scores) {
      for (let i = 0; i < candidates.length; i++) scores[i] = 1 - candidates[i]!.kvUtilization;
    },
  }),
});
