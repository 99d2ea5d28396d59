import { runningRequests, waitingRequests } from "../endpoint/gauge.ts";
import { filterPlugin } from "./filter.ts";

/**
 * Keeps endpoints below every given load; the first of the two stages in which llm-d and SGLang filter by load and then
 * match prefixes.
 */
export const loadThreshold = filterPlugin({
  summary: "drops endpoints above a queue length, batch size, request count or KV utilization",
  reads: ["scrape:load", "scrape:kv", "ledger"],
  source: "BLIS, Composable Scorer Framework; llm-d utilization-filter",
  parameters: {
    waitingMax: { type: "number", default: 128, min: 0, meaning: "most waiting requests" },
    runningMax: { type: "number", default: 1e9, min: 0, meaning: "most requests in the batch" },
    inFlightMax: { type: "number", default: 1e9, min: 0, meaning: "most of our own requests in flight" },
    kvUtilizationMax: { type: "number", default: 0.95, min: 0, max: 1, meaning: "most KV utilization" },
    whenEmpty: {
      type: "choice",
      default: "keep-all",
      values: ["keep-all", "refuse"],
      meaning: "what to do when none is below",
    },
  },
  create: (name, { waitingMax, runningMax, inFlightMax, kvUtilizationMax, whenEmpty }) => ({
    name,
    filter(_request, candidates, keep) {
      let kept = 0;
      candidates.forEach((candidate, i) => {
        const below =
          waitingRequests(candidate) <= waitingMax &&
          runningRequests(candidate) <= runningMax &&
          candidate.requestsInFlight <= inFlightMax &&
          candidate.kvUtilization <= kvUtilizationMax;
        keep[i] = below ? 1 : 0;
        if (below) kept++;
      });
      if (kept === 0 && whenEmpty === "keep-all") keep.fill(1, 0, candidates.length);
    },
  }),
});
