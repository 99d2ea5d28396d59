import { AFFINITY_PARAMETERS } from "../session/affinity-parameters.ts";
import { AffinityTable } from "../session/affinity-table.ts";
import { MICROS_PER_SECOND } from "../base/units.ts";
import { filterPlugin } from "./filter.ts";

/**
 * Keeps a session on the endpoint that it is bound to, under any load. A session is bound by its first decision, and
 * again only when its endpoint cannot serve.
 */
export const sessionPin = filterPlugin({
  summary: "keeps only the endpoint that the session is bound to",
  reads: ["session"],
  source: "B3 Routing Policies (sticky); llm-d session-affinity-filter",
  parameters: AFFINITY_PARAMETERS,
  create(name, { sessionsMax, idleSecondsMax }) {
    const table = new AffinityTable(sessionsMax, idleSecondsMax * MICROS_PER_SECOND);
    return {
      name,
      filter(request, candidates, keep) {
        const bound = table.endpointOf(request.session, candidates[0]!.at);
        if (!candidates.some(({ id }) => id === bound)) return;
        candidates.forEach(({ id }, i) => (keep[i] = id === bound ? 1 : 0));
      },
      observe(input, decision, request) {
        if (decision?.kind === "routed" && request !== undefined)
          table.bind(request.session, decision.endpoint, input.at);
      },
    };
  },
});
