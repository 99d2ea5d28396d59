import type { EndpointId } from "../endpoint/endpoint.ts";
import { AffinityTable } from "../session/affinity-table.ts";
import { AFFINITY_PARAMETERS } from "../session/affinity-parameters.ts";
import { MICROS_PER_SECOND } from "../base/units.ts";
import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers the endpoint that the session is bound to.
 *
 *     score = 1 for it, 0 for others
 *
 * The first decision binds a session. Another scorer may outvote it without moving it; a new binding is made only where
 * the bound endpoint was no candidate, or where the decision of a profile that binds no sessions took it elsewhere.
 */
export const sessionAffinity = scorerPlugin({
  summary: "whether the session is bound to the endpoint",
  reads: ["session"],
  source: "llm-d session-affinity-scorer (session_id strategy)",
  parameters: AFFINITY_PARAMETERS,
  create(name, { sessionsMax, idleSecondsMax }) {
    const table = new AffinityTable(sessionsMax, idleSecondsMax * MICROS_PER_SECOND);
    /** Of the request scored last: its session's endpoint, where that could be chosen. */
    let boundTo: EndpointId | undefined;
    return {
      name,
      score(request, candidates, scores) {
        const bound = table.endpointOf(request.session, candidates[0]?.at ?? 0);
        boundTo = undefined;
        for (let i = 0; i < candidates.length; i++) {
          const isBound = candidates[i]!.id === bound;
          scores[i] = isBound ? 1 : 0;
          if (isBound) boundTo = bound;
        }
      },
      note: () => (boundTo === undefined ? undefined : { boundTo }),
      observe(input, decision, request) {
        if (decision?.kind !== "routed" || request === undefined) return;
        table.bind(request.session, decision.noted?.boundTo ?? decision.endpoint, input.at);
      },
    };
  },
});
