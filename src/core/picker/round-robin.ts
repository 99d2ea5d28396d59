import type { EndpointId } from "../endpoint/endpoint.ts";
import { RecentMap } from "../base/recent-map.ts";
import { pickerPlugin } from "./picker.ts";

/** Endpoints whose turns are remembered. */
const ENDPOINTS_MAX = 4096;

/**
 * Picks candidates in turn.
 *
 *     count:  in order of id, the n-th decision goes to n mod candidates
 *     last:   whose last turn is longest ago, in order of id those that had none; in whatever order they once came, and
 *             from wherever somebody else's decision left off
 */
export const roundRobin = pickerPlugin({
  summary: "candidates in turn",
  reads: ["none"],
  source: "BLIS round-robin",
  parameters: {
    by: {
      type: "choice",
      default: "count",
      values: ["count", "last"],
      meaning: "the number of decisions, or whose last turn is longest ago",
    },
  },
  create(name, { by }) {
    let routed = 0;
    const turns = new RecentMap<EndpointId, number>(ENDPOINTS_MAX);
    return {
      name,
      followsTotals: false,
      epsilon: 0,
      pick(_request, candidates) {
        if (by === "count") return routed % candidates.length;
        const turnOf = (i: number): number => turns.get(candidates[i]!.id) ?? -1;
        let longest = 0;
        for (let i = 1; i < candidates.length; i++) if (turnOf(i) < turnOf(longest)) longest = i;
        return longest;
      },
      observe(_input, decision) {
        if (decision.kind !== "routed") return;
        if (by === "last") turns.set(decision.endpoint, routed);
        routed++;
      },
    };
  },
});
