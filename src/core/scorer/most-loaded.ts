import { scrapedAndOwnRequests } from "../endpoint/gauge.ts";
import { scorerPlugin } from "../profile/plugin.ts";
import { lowerIsBetter } from "./min-max.ts";

/**
 * Prefers the most loaded endpoint: the worst that a policy can do, as a lower bound for experiments.
 *
 *     score = (load - min) / (max - min), 1 where all are equal
 */
export const mostLoaded = scorerPlugin({
  summary: "requests there, the most loaded scoring best (a lower bound for experiments)",
  reads: ["ledger", "scrape:load"],
  source: "BLIS always-busiest",
  parameters: {
    measure: {
      type: "choice",
      default: "requests",
      values: ["requests", "scraped-and-own"],
      meaning: "load: every request once, or queue and batch as scraped plus our own in flight (BLIS)",
    },
  },
  create: (name, { measure }) => ({
    name,
    score(_request, candidates, scores) {
      for (let i = 0; i < candidates.length; i++) {
        const candidate = candidates[i]!;
        scores[i] = -(measure === "requests" ? candidate.effectiveLoad : scrapedAndOwnRequests(candidate));
      }
      lowerIsBetter(scores, candidates.length);
    },
  }),
});
