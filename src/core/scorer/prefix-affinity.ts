import { scorerPlugin } from "../profile/plugin.ts";

/**
 * Prefers the endpoint that is believed to hold the longest leading part of the prompt.
 *
 *     score = leading blocks held / full blocks of the prompt, 0 for a prompt below one block
 */
export const prefixAffinity = scorerPlugin({
  summary: "share of the prompt's leading blocks that the endpoint is believed to hold",
  reads: ["prefix-index"],
  source: "requirements 000 §6; llm-d prefix-cache-scorer",
  parameters: {},
  create: (name) => ({
    name,
    score(request, candidates, scores) {
      const blocks = request.blocks.length;
      for (let i = 0; i < candidates.length; i++) scores[i] = blocks === 0 ? 0 : candidates[i]!.hitBlocks / blocks;
    },
  }),
});
