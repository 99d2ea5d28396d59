import { PEER_SEQUENCE, type Routed } from "../input/decision.ts";
import { PEER_PREFILL } from "../plugin/spec.ts";
import type { Input, RequestFinished } from "../input/input.ts";
import type { RouteRequest } from "../request/request.ts";
import type { Micros } from "../base/units.ts";
import type { PeerCharged, PeerReleased } from "../request/peer-news.ts";
import type { PeerRequest } from "./peer.ts";

/** A peer's request as plugins see it; its id is no own request's, since `#` is in none of them. */
export function peerRequest(peer: string, news: PeerCharged): RouteRequest {
  const { model, tenant, user, session, promptTokens, promptTokensExact, sequences, blocks, profile } = news;
  return {
    id: `${peer}#${news.request}`,
    model,
    tenant,
    ...(user !== undefined && { user }),
    session,
    sloClass: "",
    priority: 0,
    promptTokens,
    promptTokensExact,
    outputTokensMax: news.outputTokensMax,
    sequences,
    blocks,
    profile,
  };
}

/** A peer's decision as plugins see it: of what was scored, nothing but the chosen endpoint is known. */
export function peerDecision(at: Micros, requestId: string, news: PeerCharged): Routed {
  const { endpoint, attempt, profile, reason, promptTokens, newTokens } = news;
  const hitTokens = Math.max(0, promptTokens - newTokens);
  const chosen = { endpoint, removedBy: "", freshness: "unknown", loadAgeMicros: -1, effectiveLoad: 0 } as const;
  const prefixSource = "approximate" as const;
  const row = { ...chosen, kvUtilization: 0, requestsInFlight: 0, prefillTokensQueued: 0, hitTokens, prefixSource };
  const none = new Float64Array(0);
  const breakdown = { candidates: [row], scorers: [], values: none, totals: none, clamped: 0 };
  const { prefill } = news;
  const shared =
    prefill &&
    ({
      endpoint: prefill.endpoint,
      ...PEER_PREFILL,
      hitTokens: Math.max(0, promptTokens - prefill.newTokens),
      prefixSource,
      ...(prefill.noted && { noted: prefill.noted }),
      breakdown,
    } as const);
  return {
    kind: "routed",
    at,
    sequence: PEER_SEQUENCE,
    requestId,
    attempt,
    profile,
    policyVersion: 0,
    endpoint,
    reason,
    hitTokens,
    prefixSource,
    usedLedger: false,
    ...(shared && { prefill: shared }),
    ...(news.noted && { noted: news.noted }),
    breakdown,
  };
}

/** Its first token, as long after its charge as the peer measured: reports come in batches, and late. */
export function firstTokenInput(
  { chargedAt, route }: PeerRequest,
  ttftMicros: Micros,
): Input & { kind: "first-token" } {
  return { kind: "first-token", at: chargedAt + ttftMicros, requestId: route.id };
}

/** The end of a peer's request as plugins see it; without news, one of which nothing is known. */
export function releasedInput(at: Micros, requestId: string, news?: PeerReleased): RequestFinished {
  return {
    kind: "request-finished",
    at,
    requestId,
    outcome: news?.outcome ?? "aborted",
    promptTokens: news?.promptTokens,
    cachedTokens: undefined,
    outputTokens: news?.outputTokens,
  };
}
