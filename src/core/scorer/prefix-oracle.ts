import { lowerIsBetter } from "./min-max.ts";
import { ABSTAIN, scorerPlugin } from "./scorer.ts";

/**
 * Prefers the endpoint whose cache holds the longest leading part of the prompt, as the cache itself has it: the upper
 * bound of what a router can know, beside what this one believes.
 *
 *     share = leading blocks in the engine's cache / full blocks of the prompt, 0 for a prompt below one block
 *
 * `scale: min-max` spreads the scores between the candidates: (score - min) / (max - min), 1 where all are equal. Only a
 * simulation can look into an engine; elsewhere it abstains.
 */
export const prefixOracle = scorerPlugin({
  summary: "share of the prompt's leading blocks that the engine's cache holds; abstains outside simulations",
  reads: ["engine-caches"],
  source: "BLIS, Composable Scorer Framework: oracle prefix scorer",
  parameters: {
    scale: {
      type: "choice",
      default: "absolute",
      values: ["absolute", "min-max"],
      meaning: "the share as it is, or spread between the candidates",
    },
  },
  create: (name, { scale }) => ({
    name,
    score({ blocks }, candidates, scores) {
      for (let i = 0; i < candidates.length; i++) {
        const held = candidates[i]!.cachedBlocks;
        if (held === undefined) return void scores.fill(ABSTAIN, 0, candidates.length);
        scores[i] = blocks.length === 0 ? 0 : Math.min(1, held / blocks.length);
      }
      if (scale === "absolute") return;
      for (let i = 0; i < candidates.length; i++) scores[i] = 1 - scores[i]!;
      lowerIsBetter(scores, candidates.length);
    },
  }),
});
