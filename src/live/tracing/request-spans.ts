import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { RequestObserver } from "../gateway/gateway-parts.ts";
import type { Exchange } from "../inference/exchange.ts";
import type { PathWatch } from "#core/path/path-router.ts";

/** Spans of inference requests. Whoever is not sampled costs one look at a header. */
export interface RequestSpans extends PathWatch {
  /** A request's head came. */
  opened(exchange: Pick<Exchange, "routeId" | "route" | "headers" | "openedAt">): void;
  /** It goes to an endpoint with these headers, names and values by turns; the context is put among them. */
  sends(routeId: string, endpoint: EndpointId, headers: string[]): void;
  /** The observer, the ends of requests watched. */
  observing(observe: RequestObserver): RequestObserver;
}
