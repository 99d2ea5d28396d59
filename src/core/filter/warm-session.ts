import { AFFINITY_PARAMETERS } from "../session/affinity-parameters.ts";
import { AffinityTable } from "../session/affinity-table.ts";
import { MICROS_PER_SECOND } from "../base/units.ts";
import { filterPlugin } from "./filter.ts";

/**
 * Keeps a session on its endpoint while that is warm and not overloaded.
 *
 *     hit ratio = tokens held / max(prompt tokens, 1) > hitRatioAbove
 *     requests <= overloadFactor * max(mean requests, 1)
 *
 * Both must hold; else all candidates stay.
 */
export const warmSession = filterPlugin({
  summary: "keeps the session's endpoint while it holds the prompt and is not overloaded",
  reads: ["session", "prefix-index", "ledger"],
  source: "B3 Routing Policies (unified)",
  parameters: {
    ...AFFINITY_PARAMETERS,
    hitRatioAbove: { type: "number", default: 0.5, min: 0, max: 1, meaning: "share of the prompt that must be held" },
    overloadFactor: {
      type: "number",
      default: 2,
      min: 0,
      meaning: "multiple of the mean requests that is still allowed (OVERLOAD_FACTOR)",
    },
  },
  create(name, { sessionsMax, idleSecondsMax, hitRatioAbove, overloadFactor }) {
    const table = new AffinityTable(sessionsMax, idleSecondsMax * MICROS_PER_SECOND);
    return {
      name,
      filter(request, candidates, keep) {
        const bound = table.endpointOf(request.session, candidates[0]!.at);
        const affinity = candidates.find(({ id }) => id === bound);
        if (affinity === undefined) return;
        const mean = candidates.reduce((sum, { requestsInFlight }) => sum + requestsInFlight, 0) / candidates.length;
        const warm = affinity.hitTokens / Math.max(request.promptTokens, 1) > hitRatioAbove;
        if (!warm || affinity.requestsInFlight > Math.max(mean, 1) * overloadFactor) return;
        candidates.forEach(({ id }, i) => (keep[i] = id === bound ? 1 : 0));
      },
      observe(input, decision, request) {
        if (decision?.kind === "routed" && request !== undefined)
          table.bind(request.session, decision.endpoint, input.at);
      },
    };
  },
});
