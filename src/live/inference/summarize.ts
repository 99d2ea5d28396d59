import type { Micros } from "#core/base/units.ts";

import { heldTokens } from "../disaggregation/held-tokens.ts";
import type { Forward } from "../upstream/forward.ts";
import type { ForwardResult } from "../upstream/forward-result.ts";
import type { Exchange } from "./exchange.ts";
import type { RequestSummary } from "../log/request-summary.ts";

/** A request that is over since `at`, for metrics and logs; without `forward` it was never sent anywhere. */
export function summarize(
  exchange: Exchange,
  forward: Forward | undefined,
  at: Micros,
  { outcome, usage, outputTokens, firstTokenAt }: ForwardResult,
): RequestSummary {
  const whole = outcome === "ok" && firstTokenAt === undefined ? at : undefined;
  // What a cascade held back came later.
  const ttftEnd = firstTokenAt === undefined ? whole : Math.max(firstTokenAt, exchange.cascade?.decidedAt ?? 0);
  const counted = outcome === "ok" && firstTokenAt !== undefined && outputTokens !== undefined && outputTokens > 1;
  return {
    requestId: exchange.requestId,
    routeId: exchange.routeId,
    method: exchange.incoming.method ?? "",
    route: exchange.route.pattern,
    model: exchange.model,
    tenant: exchange.tenant,
    endpoint: forward?.endpoint ?? "",
    profile: forward?.routed.profile ?? "",
    reason: exchange.refusedFor === "" ? (forward?.routed.reason ?? "") : exchange.refusedFor,
    status: exchange.status,
    outcome,
    stream: exchange.stream,
    attempts: exchange.state.attempts,
    ttftMicros: ttftEnd === undefined || forward === undefined ? undefined : ttftEnd - forward.decidedAt,
    tpotMicros: counted ? (at - firstTokenAt) / (outputTokens - 1) : undefined,
    queuedMicros: exchange.queuedMicros,
    e2eMicros: at - exchange.arrivedAt,
    promptTokens: usage?.promptTokens,
    cachedTokens: usage?.cachedTokens,
    outputTokens,
    hitTokens: heldTokens(forward?.routed),
    ...(forward?.routed.prefill && { prefillEndpoint: forward.routed.prefill.endpoint }),
  };
}
