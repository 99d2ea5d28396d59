import type { Routed } from "#core/input/decision.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { ClientRequest } from "../../request/client-request.ts";
import type { SentContent } from "../../request/engine-body.ts";
import type { RequestSpans } from "../../tracing/request-spans.ts";
import { upstreamHeaders } from "../../http/headers.ts";
import { Attempt, type AttemptListener } from "./attempt.ts";
import type { UpstreamPools } from "./upstream-pools.ts";

/** What attempts share. */
export interface AttemptParts {
  readonly pools: Pick<UpstreamPools, "get">;
  /** Clients authenticate to the gateway, so that their keys are not the engines'. */
  readonly keepsAuthorization: boolean;
  /** Headers that no client may send, in lower case. */
  readonly engineFields: { readonly headers: ReadonlySet<string> };
  /** Spans of requests; undefined where there are none. */
  readonly spans: RequestSpans | undefined;
}

/** A request, as far as its attempts differ from those of others. */
export interface AttemptedRequest extends Pick<ClientRequest, "headers" | "requestId" | "routeId" | "limits"> {
  readonly shared: AttemptParts;
}

interface SentRequest extends SentContent {
  readonly endpoint: EndpointId;
  readonly priority: Routed["priority"];
}

/** An attempt that is yet to be sent, or why there can be none. */
export function openAttempt(
  { shared, headers: given, requestId, routeId, limits }: AttemptedRequest,
  { endpoint, path, body, priority }: SentRequest,
  listener: AttemptListener,
): Attempt | Fault {
  const upstream = shared.pools.get(endpoint);
  if (upstream === undefined) return "connect";
  if (upstream.inFlight >= limits.upstreamConnectionsMax) return "saturated";
  const headers = upstreamHeaders(given, upstream.entry, {
    requestId,
    dropAuthorization: shared.keepsAuthorization,
    withheld: shared.engineFields.headers,
    priority,
  });
  shared.spans?.sends(routeId, endpoint, headers);
  return new Attempt(upstream, { path, headers, body }, listener);
}
