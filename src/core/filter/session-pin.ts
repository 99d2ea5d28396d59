import { AFFINITY_PARAMETERS } from "../session/affinity-parameters.ts";
import { AffinityTable } from "../session/affinity-table.ts";
import { MICROS_PER_SECOND } from "../base/units.ts";
import { REQUEST_KEY_PARAMETERS, requestKey } from "../request/request-key.ts";
import type { RouteRequest } from "../request/request.ts";
import { filterPlugin } from "./filter.ts";

/**
 * Keeps a session on the endpoint that it is bound to, under any load. A session is bound by its first decision, and
 * again only when its endpoint cannot serve. A tenant, or all prompts that begin alike, may be kept together in its place.
 */
export const sessionPin = filterPlugin({
  summary: "keeps only the endpoint that the session is bound to",
  reads: ["session", "tenant", "prefix-index"],
  source: "B3 Routing Policies (sticky); llm-d session-affinity-filter",
  parameters: { ...AFFINITY_PARAMETERS, ...REQUEST_KEY_PARAMETERS },
  readsWith: ({ key }) => [key === "prefix" ? "prefix-index" : key],
  create(name, { sessionsMax, idleSecondsMax, key, prefixTokens }) {
    const keyOf = (request: RouteRequest): string =>
      key === "session" ? request.session : `${requestKey(request, key, prefixTokens) ?? ""}`;
    const table = new AffinityTable(sessionsMax, idleSecondsMax * MICROS_PER_SECOND);
    return {
      name,
      filter(request, candidates, keep) {
        const bound = table.endpointOf(keyOf(request), candidates[0]!.at);
        if (!candidates.some(({ id }) => id === bound)) return;
        candidates.forEach(({ id }, i) => (keep[i] = id === bound ? 1 : 0));
      },
      observe(input, decision, request) {
        if (decision?.kind === "routed" && request !== undefined)
          table.bind(keyOf(request), decision.endpoint, input.at);
      },
    };
  },
});
