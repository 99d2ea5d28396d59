import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers the endpoint that holds most of the prompt, by where it stands between the extremes.
 *
 *     score = (held - min) / (max - min), 1 where all are equal
 */
export const precisePrefixCache = scorerPlugin({
  summary: "leading blocks of the prompt that the endpoint holds, scaled between the candidates",
  reads: ["prefix-index"],
  source: "llm-d precise-prefix-cache-scorer; BLIS",
  parameters: {},
  create: (name) => ({
    name,
    score(_request, candidates, scores) {
      let min = Infinity;
      let max = -Infinity;
      for (const { hitBlocks } of candidates) {
        min = Math.min(min, hitBlocks);
        max = Math.max(max, hitBlocks);
      }
      for (let i = 0; i < candidates.length; i++) {
        scores[i] = max === min ? 1 : (candidates[i]!.hitBlocks - min) / (max - min);
      }
    },
  }),
});
