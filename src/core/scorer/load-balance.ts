import { LOAD_MEASURE, measuredLoad } from "./load-measure.ts";
import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers the least loaded endpoint, keeping absolute differences.
 *
 *     score = 1 / (1 + load)
 */
export const loadBalance = scorerPlugin({
  summary: "inverse of the requests there",
  reads: ["ledger", "scrape:load"],
  source: "BLIS, Composable Scorer Framework",
  parameters: { measure: LOAD_MEASURE },
  create: (name, { measure }) => ({
    name,
    score(_request, candidates, scores) {
      for (let i = 0; i < candidates.length; i++) scores[i] = 1 / (1 + measuredLoad(candidates[i]!, measure));
    },
  }),
});
