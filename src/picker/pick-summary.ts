import type { Micros } from "#core/base/units.ts";
import type { RequestSummary } from "#live/log/request-summary.ts";
import type { ObservedEnd } from "./observed-response.ts";
import type { PickRequest } from "./pick-request.ts";

/** A request that is over since `at`, for metrics and logs, as the gateway reports its own. */
export function pickSummary(
  pick: PickRequest,
  at: Micros,
  { outcome, usage, outputTokens }: ObservedEnd,
): RequestSummary {
  const { routed } = pick;
  const firstAt = pick.tokens?.firstAt;
  const ttftEnd = firstAt ?? (outcome === "ok" && !pick.stream ? at : undefined);
  const counted = outcome === "ok" && firstAt !== undefined && outputTokens !== undefined && outputTokens > 1;
  return {
    requestId: pick.requestId,
    method: pick.headers.get(":method"),
    route: pick.route.pattern,
    model: pick.model,
    tenant: pick.tenant,
    endpoint: pick.endpoint,
    profile: routed?.profile ?? "",
    reason: pick.refusedFor === "" ? (routed?.reason ?? "") : pick.refusedFor,
    status: pick.seen.status,
    outcome,
    stream: pick.stream,
    attempts: pick.attempts,
    queuedMicros: pick.queuedMicros,
    ttftMicros: ttftEnd === undefined || routed === undefined ? undefined : ttftEnd - routed.at,
    tpotMicros: counted ? (at - firstAt) / (outputTokens - 1) : undefined,
    e2eMicros: at - pick.arrivedAt,
    promptTokens: usage?.promptTokens,
    cachedTokens: usage?.cachedTokens,
    outputTokens,
    hitTokens: routed?.hitTokens ?? 0,
  };
}
