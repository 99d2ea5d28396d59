import { Ewma } from "../endpoint/ewma.ts";
import { newTokens } from "../endpoint/gauge.ts";
import type { Snapshot } from "../endpoint/snapshot.ts";
import { scorerPlugin } from "../profile/plugin.ts";

/** Time constant of the mean length of answers. */
const OUTPUT_TAU_MICROS = 300_000_000;

/**
 * Prefers the endpoint where this request adds the least waiting, its own and that of the requests there, in units of the
 * time that one prompt token takes to compute.
 *
 *     prefill  = queueWeight * queued prefill tokens + new tokens * (1 + n + cacheWeight)
 *     decode   = output tokens * (2 * n * sequenceTokens + contextShare * (context + n * prompt tokens))
 *     overflow = tokens of context and prompt together beyond the KV cache, where its size is known
 *     cost     = prefill + batchWeight * decode + fullWeight * overflow
 *     score    = (best cost + 1) / (cost + 1)
 *
 * n requests are there, with `context` tokens between them. This request waits for the queued tokens and its own new
 * ones; each of the n waits for the new ones too, whose steps they share. From then on every step takes longer: for this
 * request by the n and their context, for each of the n by this request and its prompt. What does not fit waits until
 * something ends. A token computed takes a block of cache from another prompt, which `cacheWeight` prices. How long
 * answers are is the moving mean of what was seen. The weights were chosen on halves of recorded workloads and judged on
 * the other halves and on others (bench/profiles.ts).
 */
export const addedLatency = scorerPlugin({
  summary: "waiting that the request would add there, for itself and for the requests it joins",
  reads: ["ledger", "scrape:load", "prefix-index", "usage"],
  source: "gnomon; LMetric's factors, added up as the waiting of each",
  parameters: {
    queueWeight: {
      type: "number",
      default: 4,
      min: 0,
      meaning: "what a token of the queue costs; above 1 where the first token matters more than the waiting of all",
    },
    cacheWeight: {
      type: "number",
      default: 1,
      min: 0,
      meaning: "what a new token costs beside its time, for the cached blocks that it displaces",
    },
    batchWeight: { type: "number", default: 1, min: 0, meaning: "what longer steps cost against waiting for prompts" },
    fullWeight: {
      type: "number",
      default: 10,
      min: 0,
      meaning: "what a token costs that the KV cache has no room for",
    },
    sequenceTokens: {
      type: "number",
      default: 0.5,
      min: 0,
      meaning: "time that one more sequence adds to a step, in prompt tokens",
    },
    contextShare: {
      type: "number",
      default: 0.002,
      min: 0,
      meaning: "time that one more token of context adds to a step, in prompt tokens",
    },
    outputTokensGuess: {
      type: "number",
      default: 256,
      min: 1,
      meaning: "length of an answer until the first one was seen",
    },
  },
  create(name, { queueWeight, cacheWeight, batchWeight, fullWeight, sequenceTokens, contextShare, outputTokensGuess }) {
    const outputTokens = new Ewma(OUTPUT_TAU_MICROS);
    const costOf = (candidate: Snapshot, promptTokens: number, length: number): number => {
      const n = candidate.effectiveLoad;
      const context = contextTokens(candidate, promptTokens, length);
      const computed = newTokens(candidate, promptTokens) * (1 + n + cacheWeight);
      const decode = length * (2 * n * sequenceTokens + contextShare * (context + n * promptTokens));
      const overflow = Math.max(0, context + promptTokens - (candidate.endpoint.kvCapacityTokens ?? Infinity));
      return queueWeight * candidate.prefillTokensQueued + computed + batchWeight * decode + fullWeight * overflow;
    };
    return {
      name,
      score({ promptTokens }, candidates, scores) {
        const length = outputTokens.value ?? outputTokensGuess;
        let best = Infinity;
        for (let i = 0; i < candidates.length; i++) {
          const cost = costOf(candidates[i]!, promptTokens, length);
          scores[i] = cost;
          best = Math.min(best, cost);
        }
        for (let i = 0; i < candidates.length; i++) scores[i] = (best + 1) / (scores[i]! + 1);
      },
      observe(input) {
        if (input.kind !== "request-finished" || input.outcome !== "ok") return;
        // An embedding, a score or a class has no tokens, and says nothing of how long answers are.
        if (input.outputTokens === undefined || input.outputTokens === 0) return;
        outputTokens.add(input.at, input.outputTokens);
      },
    };
  },
});

/** Prompts there, those of others being as long as this one, and half an answer each: they are in the midst of it. */
function contextTokens(candidate: Snapshot, promptTokens: number, outputTokens: number): number {
  const { effectiveLoad, requestsInFlight, promptTokensInFlight } = candidate;
  const foreign = Math.max(0, effectiveLoad - requestsInFlight);
  return promptTokensInFlight + foreign * promptTokens + (effectiveLoad * outputTokens) / 2;
}
