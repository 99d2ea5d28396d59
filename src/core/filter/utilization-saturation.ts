import { waitingRequests } from "../endpoint/gauge.ts";
import { filterPlugin } from "./filter.ts";

/**
 * Keeps endpoints that are not saturated by their own account.
 *
 *     keep while waiting < queueDepthMax * (1 + headroom) and kv < kvUtilizationMax * (1 + headroom)
 *
 * Endpoints without a fresh scrape are dropped. Where none is left, all stay.
 */
export const utilizationSaturation = filterPlugin({
  summary: "drops endpoints whose queue or KV cache is full by their own account",
  reads: ["scrape:load", "scrape:kv"],
  source: "llm-d utilization-detector",
  parameters: {
    queueDepthMax: { type: "number", default: 5, min: 0.001, meaning: "waiting requests that saturate" },
    kvUtilizationMax: { type: "number", default: 0.8, min: 0.001, max: 1, meaning: "KV utilization that saturates" },
    headroom: { type: "number", default: 0, min: 0, meaning: "share above the thresholds that is still allowed" },
  },
  create: (name, { queueDepthMax, kvUtilizationMax, headroom }) => ({
    name,
    filter(_request, candidates, keep) {
      const bound = 1 + headroom;
      let kept = 0;
      candidates.forEach((candidate, i) => {
        const free =
          candidate.freshness === "fresh" &&
          waitingRequests(candidate) < queueDepthMax * bound &&
          candidate.kvUtilization < kvUtilizationMax * bound;
        keep[i] = free ? 1 : 0;
        if (free) kept++;
      });
      if (kept === 0) keep.fill(1, 0, candidates.length);
    },
  }),
});
