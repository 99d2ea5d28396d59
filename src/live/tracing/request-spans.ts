import type { Micros } from "#core/base/units.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { RequestObserver } from "../log/request-observer.ts";
import type { ClientRequest } from "../request/client-request.ts";
import type { PathWatch } from "#core/path/path-router.ts";

/** A request whose head came. */
export interface OpenedRequest extends Pick<ClientRequest, "routeId" | "route" | "headers"> {
  readonly openedAt: Micros;
}

/** Spans of inference requests. Whoever is not sampled costs one look at a header. */
export interface RequestSpans extends PathWatch {
  /** A request's head came. */
  opened(request: OpenedRequest): void;
  /** It goes to an endpoint with these headers, names and values by turns; the context is put among them. */
  sends(routeId: string, endpoint: EndpointId, headers: string[]): void;
  /** The observer, the ends of requests watched. */
  observing(observe: RequestObserver): RequestObserver;
}

/** What became of spans so far: a collector took them, or a batch of them could not be sent. */
export interface SpanCounts {
  readonly sent: number;
  readonly failed: number;
}
