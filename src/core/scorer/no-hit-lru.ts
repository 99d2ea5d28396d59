import type { EndpointId } from "../endpoint/endpoint.ts";
import { RecentMap } from "../base/recent-map.ts";
import { scorerPlugin } from "./scorer.ts";

/**
 * Spreads prompts that nobody holds: the endpoint that got such a prompt longest ago comes first.
 *
 *     warm (some candidate holds a block): 0.5 for all
 *     cold: 1 - rank / (n - 1), never used first in order of id, then the longest unused
 */
export const noHitLru = scorerPlugin({
  summary: "for prompts that nobody holds, how long ago the endpoint got one",
  reads: ["prefix-index"],
  source: "llm-d no-hit-lru-scorer",
  parameters: {
    lruSize: { type: "integer", default: 1024, min: 1, meaning: "endpoints remembered" },
  },
  create(name, { lruSize }) {
    /** Endpoint → number of its last cold request. */
    const lastCold = new RecentMap<EndpointId, number>(lruSize);
    let coldRequests = 0;
    /** Whether some candidate held the prompt of the request scored last. */
    let warm = false;
    return {
      name,
      score(_request, candidates, scores) {
        warm = candidates.some(({ hitBlocks }) => hitBlocks > 0);
        if (warm || candidates.length <= 1) return void scores.fill(warm ? 0.5 : 1, 0, candidates.length);
        const ranked = candidates.map((candidate, i) => ({ i, last: lastCold.get(candidate.id) ?? -1 }));
        ranked.sort((a, b) => a.last - b.last || a.i - b.i);
        ranked.forEach(({ i }, rank) => (scores[i] = 1 - rank / (candidates.length - 1)));
      },
      note: () => (warm ? WARM : COLD),
      observe(_input, decision) {
        if (decision?.kind !== "routed") return;
        const { noted, breakdown } = decision;
        const wasWarm = noted?.warm ?? breakdown.candidates.some(({ hitTokens }) => hitTokens > 0);
        if (!wasWarm) lastCold.set(decision.endpoint, coldRequests++);
      },
    };
  },
});

const WARM = { warm: true } as const;
const COLD = { warm: false } as const;
