import type { LetInElsewhere } from "../admission/let-in-elsewhere.ts";
import type { EndpointId } from "../endpoint/endpoint.ts";
import type { EndpointState } from "../endpoint/endpoint-state.ts";
import type { Insertion } from "../prefix/prefix-index.ts";
import type { RouteRequest } from "../request/request.ts";
import type { Micros } from "../base/units.ts";

/** A request that a peer has in flight. */
export interface PeerRequest {
  readonly number: number;
  readonly route: RouteRequest;
  /** Where its current attempt is, and what it will release; undefined between attempts. */
  state: EndpointState | undefined;
  insertion: Insertion | undefined;
  /** Where its prompt is computed, while that is another endpoint and under way. */
  prefill: { readonly state: EndpointState; readonly insertion: Insertion | undefined } | undefined;
  /** What it holds of limits is given back by this. */
  readonly left: LetInElsewhere;
  /** Its first token was seen. */
  begun: boolean;
  /** When its charge was reported here. */
  chargedAt: Micros;
}

/** Another router, in one of its lives. */
export interface Peer {
  readonly name: string;
  readonly epoch: number;
  /** Of the last report that was taken. */
  sequence: number;
  /** Reports before were missed, and no snapshot has come since. */
  incomplete: boolean;
  readonly requests: Map<number, PeerRequest>;
  /** Endpoints that its breakers keep out. */
  readonly suspects: Set<EndpointId>;
}

/** A peer of which no report was taken yet; `incomplete` where some came before and were missed. */
export function newPeer(name: string, epoch: number, incomplete: boolean): Peer {
  return { name, epoch, sequence: 0, incomplete, requests: new Map(), suspects: new Set() };
}
