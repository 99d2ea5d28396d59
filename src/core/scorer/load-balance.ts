import { scrapedAndOwnRequests } from "../endpoint/gauge.ts";
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
        scores[i] = 1 / (1 + (measure === "requests" ? candidate.effectiveLoad : scrapedAndOwnRequests(candidate)));
      }
    },
  }),
});
