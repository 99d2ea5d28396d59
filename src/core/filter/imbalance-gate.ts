import type { Snapshot } from "../endpoint/snapshot.ts";
import type { Random } from "../base/random.ts";
import { filterPlugin } from "./filter.ts";

/**
 * Switches affinity off for the fleet while requests are spread too unevenly.
 *
 *     imbalanced:  max - min > absolute  and  max > relative * min
 *
 * over our own requests in flight, both strict. Then either one endpoint with the fewest requests stays
 * (`least-request`), or all of those (`restrict`).
 */
export const imbalanceGate = filterPlugin({
  summary: "keeps only the least busy endpoints while the fleet is unbalanced",
  reads: ["ledger"],
  source: "AIBrix, Routing Algorithms (prefix-cache); SMG cache_aware",
  parameters: {
    absolute: {
      type: "number",
      default: 16,
      meaning:
        "difference of requests that is still balanced (AIBRIX_PREFIX_CACHE_POD_RUNNING_REQUEST_IMBALANCE_ABS_COUNT; SMG balance-abs-threshold)",
    },
    relative: {
      type: "number",
      default: 0,
      min: 0,
      meaning:
        "ratio of most to fewest that is still balanced; 0 looks at the difference alone (SMG balance-rel-threshold)",
    },
    onImbalance: {
      type: "choice",
      default: "least-request",
      values: ["least-request", "restrict"],
      meaning: "keep one of the least busy, or all of them",
    },
    tieBreak: {
      type: "choice",
      default: "lowest-id",
      values: ["lowest-id", "random"],
      meaning: "which one of the least busy",
    },
  },
  create: (name, { absolute, relative, onImbalance, tieBreak }) => ({
    name,
    filter(_request, candidates, keep, random) {
      const counts = candidates.map(({ requestsInFlight }) => requestsInFlight);
      const min = Math.min(...counts);
      const max = Math.max(...counts);
      if (max - min <= absolute || (relative > 0 && max <= relative * min)) return;
      const only = onImbalance === "restrict" ? undefined : chooseLeast(candidates, min, tieBreak, random);
      counts.forEach((count, i) => (keep[i] = count === min && (only === undefined || i === only) ? 1 : 0));
    },
  }),
});

function chooseLeast(
  candidates: readonly Snapshot[],
  min: number,
  tieBreak: "lowest-id" | "random",
  random: Random,
): number {
  const least = candidates.map((_, i) => i).filter((i) => candidates[i]!.requestsInFlight === min);
  return least[tieBreak === "random" ? random.below(least.length) : 0]!;
}
