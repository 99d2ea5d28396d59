import { AffinityTable } from "../session/affinity-table.ts";
import { AFFINITY_PARAMETERS } from "../session/affinity-parameters.ts";
import { MICROS_PER_SECOND } from "../units.ts";
import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers the endpoint that the session is bound to.
 *
 *     score = 1 for it, 0 for others
 *
 * The first decision binds a session. Another scorer may outvote it without moving it; a new binding is made only where
 * the bound endpoint was no candidate, or where another profile's decision took the session elsewhere.
 */
export const sessionAffinity = scorerPlugin({
  summary: "whether the session is bound to the endpoint",
  reads: ["session"],
  source: "llm-d session-affinity-scorer (session_id strategy)",
  parameters: AFFINITY_PARAMETERS,
  create(name, { sessionsMax, idleSecondsMax }) {
    const table = new AffinityTable(sessionsMax, idleSecondsMax * MICROS_PER_SECOND);
    /** The request scored last, and whether its session's endpoint could be chosen. */
    let scored = { requestId: "", present: false };
    return {
      name,
      score(request, candidates, scores) {
        const bound = table.endpointOf(request.session, candidates[0]?.at ?? 0);
        scored = { requestId: request.id, present: false };
        for (let i = 0; i < candidates.length; i++) {
          const isBound = candidates[i]!.id === bound;
          scores[i] = isBound ? 1 : 0;
          if (isBound) scored.present = true;
        }
      },
      observe(input, decision, request) {
        if (decision?.kind !== "routed" || request === undefined) return;
        const stays = scored.present && scored.requestId === request.id;
        const bound = stays ? table.endpointOf(request.session, input.at) : undefined;
        table.bind(request.session, bound ?? decision.endpoint, input.at);
      },
    };
  },
});
