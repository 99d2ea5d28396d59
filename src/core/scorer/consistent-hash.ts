import { mix32, nameHash } from "../base/random.ts";
import { REQUEST_KEY_PARAMETERS, requestKey } from "../request/request-key.ts";
import { ABSTAIN, scorerPlugin } from "./scorer.ts";

/**
 * Ranks the endpoints for a key by rendezvous hashing: when one comes or goes, only its own keys move. The highest rank
 * scores 1; a loaded endpoint that a filter removed hands its keys to the next in rank.
 *
 *     rank:    score = hash(endpoint, key) / 2^32
 *     winner:  score = 1 for the highest of these, 0 for the others, which no smaller weight beside it can outdo
 *
 * A request without the key is abstained from, so that the next scorer decides.
 */
export const consistentHash = scorerPlugin({
  summary: "rank of the endpoint for the request's session, tenant or prompt prefix",
  reads: ["session", "tenant", "prefix-index"],
  source: "SMG consistent_hashing and prefix_hash, production-stack session (rings there)",
  parameters: {
    ...REQUEST_KEY_PARAMETERS,
    scores: {
      type: "choice",
      default: "rank",
      values: ["rank", "winner"],
      meaning: "every endpoint's rank, or the first alone",
    },
  },
  create: (name, { key, prefixTokens, scores: kind }) => ({
    name,
    score(request, candidates, scores) {
      const hash = requestKey(request, key, prefixTokens);
      if (hash === undefined) return void scores.fill(ABSTAIN, 0, candidates.length);
      let highest = 0;
      for (let i = 0; i < candidates.length; i++) {
        scores[i] = mix32(nameHash(candidates[i]!.id) ^ hash) / 0x1_0000_0000;
        if (scores[i]! > scores[highest]!) highest = i;
      }
      if (kind === "rank" || candidates.length === 0) return;
      scores.fill(0, 0, candidates.length);
      scores[highest] = 1;
    },
  }),
});
