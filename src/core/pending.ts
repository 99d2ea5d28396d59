import type { EndpointId } from "./endpoint/endpoint.ts";
import type { EndpointState } from "./endpoint/endpoint-state.ts";
import type { Insertion } from "./prefix/prefix-index.ts";
import type { RouteRequest } from "./request.ts";
import type { RolloutPlace } from "./rollouts.ts";
import type { Micros } from "./units.ts";

/** A request between its arrival and its end. */
export interface Pending {
  readonly request: RouteRequest;
  /** Its place in a rollout, for all its attempts. */
  readonly place: RolloutPlace | undefined;
  /** Endpoints that this request was sent to; a retry leaves them out. */
  readonly tried: EndpointId[];
  /** Where the current attempt is, and what it will release; undefined between attempts. */
  state: EndpointState | undefined;
  insertion: Insertion | undefined;
  sentAt: Micros;
  firstTokenAt: Micros | undefined;
}

/** One that arrives, before its first decision. */
export function newPending(request: RouteRequest, place: RolloutPlace | undefined, at: Micros): Pending {
  return { request, place, tried: [], state: undefined, insertion: undefined, sentAt: at, firstTokenAt: undefined };
}
