import { ABSTAIN, scorerPlugin } from "./scorer.ts";

/**
 * Prefers endpoints whose caches served much of late: a fleet's warm ones, whatever this prompt is.
 *
 *     score = share of prompt tokens that the engine found in its cache between its last two scrapes, in [0, 1]
 *
 * An endpoint whose page is old, or had no prompt in between, is abstained from. Beside a scorer of this prompt's own
 * blocks it decides for prompts that no index knows; alone it concentrates requests, as what is warm becomes warmer.
 */
export const cacheHitRate = scorerPlugin({
  summary: "share of prompt tokens that the engine's cache had of late",
  reads: ["scrape:kv", "scrape:load"],
  source: "BLIS, Evolutionary Policy Optimization: CacheHitRate among the observable signals",
  parameters: {},
  create: (name) => ({
    name,
    score(_request, candidates, scores) {
      for (let i = 0; i < candidates.length; i++) {
        const { freshness, load } = candidates[i]!;
        const ratio = freshness === "fresh" ? load?.prefixHitRatio : undefined;
        scores[i] = ratio === undefined ? ABSTAIN : Math.min(1, Math.max(0, ratio));
      }
    },
  }),
});
