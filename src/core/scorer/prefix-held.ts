import { scorerPlugin } from "./scorer.ts";

/**
 * A bonus for endpoints that are believed to hold any of the prompt, however little.
 *
 *     score = 1 where the prompt's first block is held, else 0
 */
export const prefixHeld = scorerPlugin({
  summary: "whether the endpoint is believed to hold the prompt's first block",
  reads: ["prefix-index"],
  source: "BLIS, weighted-scoring's prefix_match_bonus",
  parameters: {},
  create: (name) => ({
    name,
    score(_request, candidates, scores) {
      for (let i = 0; i < candidates.length; i++) scores[i] = candidates[i]!.hitBlocks > 0 ? 1 : 0;
    },
  }),
});
