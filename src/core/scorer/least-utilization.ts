import { scorerPlugin } from "../profile/plugin.ts";
import { lowerIsBetter } from "./min-max.ts";
import { usedShare } from "./utilization.ts";

/**
 * Prefers the least utilized endpoint.
 *
 *     score = (max - util) / (max - min), 1 where all are equal; util as in `utilization`
 */
export const leastUtilization = scorerPlugin({
  summary: "share of concurrency or multiprocessors in use there, scaled between the candidates",
  reads: ["ledger", "scrape:load", "scrape:power"],
  source: "AIBrix least-utilization",
  parameters: {
    concurrencyMax: {
      type: "integer",
      default: 64,
      min: 1,
      meaning: "requests at once where the endpoint's own limit is unknown",
    },
  },
  create: (name, { concurrencyMax }) => ({
    name,
    score(_request, candidates, scores) {
      for (let i = 0; i < candidates.length; i++) scores[i] = usedShare(candidates[i]!, concurrencyMax);
      lowerIsBetter(scores, candidates.length);
    },
  }),
});
