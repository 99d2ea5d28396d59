import { scorerPlugin } from "../profile/plugin.ts";
import { AffinityTable } from "../session/affinity-table.ts";
import { AFFINITY_PARAMETERS } from "../session/affinity-parameters.ts";

/**
 * Prefers the endpoint that served the session last.
 *
 *     score = 1 for it, 0 for others
 */
export const sessionAffinity = scorerPlugin({
  summary: "whether the endpoint served this session last",
  reads: ["session"],
  source: "llm-d session-affinity-scorer (session_id strategy)",
  parameters: AFFINITY_PARAMETERS,
  create(name, { sessionsMax, idleSecondsMax }) {
    const table = new AffinityTable(sessionsMax, idleSecondsMax * 1_000_000);
    return {
      name,
      score(request, candidates, scores) {
        const bound = table.endpointOf(request.session, candidates[0]?.at ?? 0);
        for (let i = 0; i < candidates.length; i++) scores[i] = candidates[i]!.id === bound ? 1 : 0;
      },
      observe(input, decision, request) {
        if (decision?.kind === "routed" && request !== undefined)
          table.bind(request.session, decision.endpoint, input.at);
      },
    };
  },
});
