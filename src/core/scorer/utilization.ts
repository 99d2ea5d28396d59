import { runningRequests } from "../endpoint/gauge.ts";
import type { Snapshot } from "../endpoint/snapshot.ts";
import { lowerIsBetter } from "./min-max.ts";
import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers idle hardware.
 *
 *     score = 1 - util,  util = max(in flight / most concurrent, SM activity)
 *
 * SM activity counts where a DCGM exporter reported it. Most concurrent is the endpoint's own where known. `scale: min-max`
 * spreads the scores between the candidates: (max - util) / (max - min), 1 where all are equal.
 */
export const utilization = scorerPlugin({
  summary: "share of the endpoint's concurrency and of its multiprocessors that is free",
  reads: ["ledger", "scrape:load", "scrape:power"],
  source: "Cognitora, KV-aware scoring, util(n); AIBrix least-utilization for min-max",
  parameters: {
    concurrencyMax: {
      type: "integer",
      default: 64,
      min: 1,
      meaning: "requests at once where the endpoint's own limit is unknown",
    },
    scale: {
      type: "choice",
      default: "absolute",
      values: ["absolute", "min-max"],
      meaning: "the share as it is, or spread between the candidates (AIBrix)",
    },
  },
  create: (name, { concurrencyMax, scale }) => ({
    name,
    score(_request, candidates, scores) {
      for (let i = 0; i < candidates.length; i++) scores[i] = usedShare(candidates[i]!, concurrencyMax);
      if (scale === "min-max") lowerIsBetter(scores, candidates.length);
      else for (let i = 0; i < candidates.length; i++) scores[i] = 1 - scores[i]!;
    },
  }),
});

/** In [0, 1]. */
function usedShare(snapshot: Snapshot, concurrencyMaxDefault: number): number {
  const inFlight = Math.max(snapshot.effectiveLoad, snapshot.freshness === "fresh" ? runningRequests(snapshot) : 0);
  const requests = inFlight / (snapshot.endpoint.concurrencyMax ?? concurrencyMaxDefault);
  const sm = snapshot.freshness === "fresh" ? (snapshot.load?.smUtilization ?? 0) : 0;
  return Math.min(1, Math.max(requests, sm));
}
