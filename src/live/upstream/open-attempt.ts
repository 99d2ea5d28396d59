import type { Routed } from "#core/input/decision.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { Exchange } from "../inference/exchange.ts";
import { upstreamHeaders } from "../http/headers.ts";
import { Attempt, type AttemptListener } from "./connection/attempt.ts";

/** What a request is sent as. */
export interface SentContent {
  readonly path: string;
  readonly body: Buffer;
}

interface SentRequest extends SentContent {
  readonly endpoint: EndpointId;
  readonly priority: Routed["priority"];
}

/** An attempt that is yet to be sent, or why there can be none. */
export function openAttempt(
  { context, headers: given, requestId, routeId, limits }: Exchange,
  { endpoint, path, body, priority }: SentRequest,
  listener: AttemptListener,
): Attempt | Fault {
  const upstream = context.pools.get(endpoint);
  if (upstream === undefined) return "connect";
  if (upstream.inFlight >= limits.upstreamConnectionsMax) return "saturated";
  const headers = upstreamHeaders(given, upstream.entry, {
    requestId,
    dropAuthorization: context.keepsAuthorization,
    withheld: context.engineFields.headers,
    priority,
  });
  context.spans?.sends(routeId, endpoint, headers);
  return new Attempt(upstream, { path, headers, body }, listener);
}
