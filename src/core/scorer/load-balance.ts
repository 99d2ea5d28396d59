import { scorerPlugin } from "../profile/plugin.ts";

/**
 * Prefers the least loaded endpoint, keeping absolute differences.
 *
 *     score = 1 / (1 + load)
 */
export const loadBalance = scorerPlugin({
  summary: "inverse of the requests there",
  reads: ["ledger", "scrape:load"],
  source: "requirements 000 §6 (BLIS)",
  parameters: {},
  create: (name) => ({
    name,
    score(_request, candidates, scores) {
      for (let i = 0; i < candidates.length; i++) scores[i] = 1 / (1 + candidates[i]!.effectiveLoad);
    },
  }),
});
