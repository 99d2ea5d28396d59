import { LOAD_MEASURE, measuredLoad } from "./load-measure.ts";
import { lowerIsBetter } from "./min-max.ts";
import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers the most loaded endpoint: the worst that a policy can do, as a lower bound for experiments.
 *
 *     score = (load - min) / (max - min), 1 where all are equal
 */
export const mostLoaded = scorerPlugin({
  summary: "requests there, the most loaded scoring best (a lower bound for experiments)",
  reads: ["ledger", "scrape:load"],
  source: "BLIS always-busiest",
  parameters: { measure: LOAD_MEASURE },
  create: (name, { measure }) => ({
    name,
    score(_request, candidates, scores) {
      for (let i = 0; i < candidates.length; i++) scores[i] = -measuredLoad(candidates[i]!, measure);
      lowerIsBetter(scores, candidates.length);
    },
  }),
});
