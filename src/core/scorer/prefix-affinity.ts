import { lowerIsBetter } from "./min-max.ts";
import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers the endpoint that is believed to hold the longest leading part of the prompt.
 *
 *     share = leading blocks held / full blocks of the prompt, 0 for a prompt below one block
 *     score = w * min(1, tokens held / scale)^2 + (1 - w) * share
 *
 * `scale: min-max` spreads the scores between the candidates: (score - min) / (max - min), 1 where all are equal.
 */
export const prefixAffinity = scorerPlugin({
  summary: "share of the prompt's leading blocks that the endpoint is believed to hold",
  reads: ["prefix-index"],
  source:
    "BLIS, Composable Scorer Framework; llm-d prefix-cache-scorer for the match-length term; Cognitora, KV-aware scoring for leadingBlocksMax",
  parameters: {
    matchLengthWeight: { type: "number", default: 0, min: 0, max: 1, meaning: "weight w of the absolute length" },
    matchLengthScaleTokens: { type: "number", default: 8192, min: 1, meaning: "tokens held that count as the most" },
    leadingBlocksMax: {
      type: "integer",
      default: 0,
      min: 0,
      meaning: "look at so many leading blocks only; 0 for all",
    },
    scale: {
      type: "choice",
      default: "absolute",
      values: ["absolute", "min-max"],
      meaning: "the share as it is, or spread between the candidates (AIBrix composites)",
    },
  },
  create: (name, { matchLengthWeight, matchLengthScaleTokens, leadingBlocksMax, scale }) => ({
    name,
    score({ blocks }, candidates, scores) {
      const most = leadingBlocksMax === 0 ? Infinity : leadingBlocksMax;
      const total = Math.min(blocks.length, most);
      for (let i = 0; i < candidates.length; i++) {
        const held = Math.min(candidates[i]!.hitBlocks, most);
        const share = total === 0 ? 0 : held / total;
        const length = Math.min(1, (held * blocks.blockTokens) / matchLengthScaleTokens);
        scores[i] = matchLengthWeight * length * length + (1 - matchLengthWeight) * share;
      }
      if (scale === "absolute") return;
      for (let i = 0; i < candidates.length; i++) scores[i] = 1 - scores[i]!;
      lowerIsBetter(scores, candidates.length);
    },
  }),
});
