import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers endpoints that owe few prompt tokens, this request's own included, on an absolute scale.
 *
 *     score = 1 - min(t, threshold) / threshold,  t = queued prefill tokens + tokens of this prompt not held there
 */
export const tokenLoad = scorerPlugin({
  summary: "prompt tokens owed there and by this request, on an absolute scale",
  reads: ["ledger", "prefix-index"],
  source: "llm-d token-load-scorer with its inflight-load-producer",
  parameters: {
    queueThresholdTokens: { type: "number", default: 4_194_304, min: 1, meaning: "tokens that count as full" },
  },
  create: (name, { queueThresholdTokens }) => ({
    name,
    score(request, candidates, scores) {
      for (let i = 0; i < candidates.length; i++) {
        const candidate = candidates[i]!;
        const tokens = candidate.prefillTokensQueued + Math.max(0, request.promptTokens - candidate.hitTokens);
        scores[i] = 1 - Math.min(tokens, queueThresholdTokens) / queueThresholdTokens;
      }
    },
  }),
});
