import { mix32, nameHash } from "../base/random.ts";
import type { RouteRequest } from "../request/request.ts";
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
    key: {
      type: "choice",
      default: "session",
      values: ["session", "tenant", "prefix"],
      meaning: "what stays together",
    },
    prefixTokens: { type: "integer", default: 256, min: 1, meaning: "leading tokens that name a prefix" },
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
      const hash = keyHash(request, key, prefixTokens);
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

function keyHash(
  request: RouteRequest,
  key: "session" | "tenant" | "prefix",
  prefixTokens: number,
): number | undefined {
  if (key === "prefix") {
    const { hashes, length, blockTokens } = request.blocks;
    const block = Math.min(length, Math.max(1, Math.floor(prefixTokens / blockTokens))) - 1;
    return block < 0 ? undefined : mix32(hashes[2 * block]! ^ mix32(hashes[2 * block + 1]!));
  }
  const value = key === "session" ? request.session : request.tenant;
  return value === "" ? undefined : nameHash(value);
}
