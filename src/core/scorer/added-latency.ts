import { newTokens } from "../endpoint/gauge.ts";
import { scorerPlugin } from "../profile/plugin.ts";

/**
 * Prefers the endpoint where this request adds the least waiting, its own and that of the requests there, in units of the
 * time that one prompt token takes to compute.
 *
 *     cost  = queueWeight * queued prefill tokens + new tokens * (1 + n + cacheWeight) + batchTokens * n
 *     score = (best cost + 1) / (cost + 1)
 *
 * n requests are there. This request waits for the queued tokens and its own new ones; each of the n waits for the new
 * ones too, whose steps they share; and the batch that grows makes every step longer. A token computed is also a block of
 * cache taken from another prompt, which `cacheWeight` prices. The defaults are those that served recorded conversations
 * and agent sessions best (bench/profiles.ts); `batchTokens` is well above the cost of a step, since the number of
 * requests also stands for what the router does not see, the length of their answers and the room that they will take.
 */
export const addedLatency = scorerPlugin({
  summary: "waiting that the request would add there, for itself and for the requests it joins",
  reads: ["ledger", "scrape:load", "prefix-index"],
  source: "gnomon; LMetric's factors, added up as the waiting of each",
  parameters: {
    queueWeight: {
      type: "number",
      default: 10,
      min: 0,
      meaning: "what a token of the queue costs; above 1 where the first token matters more than the waiting of all",
    },
    cacheWeight: {
      type: "number",
      default: 10,
      min: 0,
      meaning: "what a new token costs beside its time, for the cached blocks that it displaces",
    },
    batchTokens: {
      type: "number",
      default: 15_000,
      min: 0,
      meaning: "what each request that is there costs, in prompt tokens",
    },
  },
  create: (name, { queueWeight, cacheWeight, batchTokens }) => ({
    name,
    score({ promptTokens }, candidates, scores) {
      let best = Infinity;
      for (let i = 0; i < candidates.length; i++) {
        const { prefillTokensQueued: queued, effectiveLoad: load } = candidates[i]!;
        const computed = newTokens(candidates[i]!, promptTokens) * (1 + load + cacheWeight);
        const cost = queueWeight * queued + computed + batchTokens * load;
        scores[i] = cost;
        best = Math.min(best, cost);
      }
      for (let i = 0; i < candidates.length; i++) scores[i] = (best + 1) / (scores[i]! + 1);
    },
  }),
});
