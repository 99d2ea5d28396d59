import type { Snapshot } from "../endpoint/snapshot.ts";
import { filterPlugin } from "./filter.ts";

/**
 * Keeps the endpoints that hold most of the prompt, unless they are too busy.
 *
 *     match_i  = leading blocks held / blocks (in whole percent where `granularity` is percent)
 *     allowed  = match_i > above  and  requests_i <= mean + deviationFactor * sd
 *
 * mean and sample standard deviation (n - 1) over all candidates. Of the allowed ones those with the best match stay;
 * where none is allowed, all stay.
 */
export const prefixMatch = filterPlugin({
  summary: "keeps the endpoints with the longest match that are not far busier than the fleet",
  reads: ["prefix-index", "ledger"],
  source: "AIBrix, Routing Algorithms (prefix-cache, standard-deviation guard); SMG cache_aware; Preble",
  parameters: {
    above: {
      type: "number",
      default: 0,
      min: 0,
      max: 1,
      meaning: "share of the prompt that a match must exceed (SMG cache-threshold)",
    },
    deviationGuard: { type: "boolean", default: true, meaning: "refuse endpoints beyond mean + deviationFactor * sd" },
    deviationFactor: {
      type: "number",
      default: 2,
      meaning: "standard deviations above the mean that are allowed (AIBRIX_PREFIX_CACHE_STANDARD_DEVIATION_FACTOR)",
    },
    granularity: {
      type: "choice",
      default: "percent",
      values: ["percent", "blocks"],
      meaning: "what counts as an equal match",
    },
  },
  create: (name, { above, deviationGuard, deviationFactor, granularity }) => ({
    name,
    filter(request, candidates, keep) {
      const total = request.blocks.length;
      const busiest = deviationGuard ? busiestAllowed(candidates, deviationFactor) : Infinity;
      let best = -1;
      const matches = candidates.map(({ hitBlocks, requestsInFlight }) => {
        const match = granularity === "percent" ? Math.floor((hitBlocks * 100) / total) : hitBlocks;
        if (hitBlocks === 0 || hitBlocks / total <= above || requestsInFlight > busiest) return -1;
        best = Math.max(best, match);
        return match;
      });
      if (best >= 0) matches.forEach((match, i) => (keep[i] = match === best ? 1 : 0));
    },
  }),
});

/** mean + factor * sample standard deviation of requests in flight; the mean alone below two candidates. */
function busiestAllowed(candidates: readonly Snapshot[], factor: number): number {
  const count = candidates.length;
  const mean = candidates.reduce((sum, { requestsInFlight }) => sum + requestsInFlight, 0) / count;
  const squares = candidates.reduce((sum, { requestsInFlight }) => sum + (requestsInFlight - mean) ** 2, 0);
  return mean + factor * (count > 1 ? Math.sqrt(squares / (count - 1)) : 0);
}
