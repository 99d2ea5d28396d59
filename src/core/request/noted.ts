import type { EndpointId } from "../endpoint/endpoint.ts";

/** What was at the chosen endpoint before the request, as its decision saw it. */
export interface NotedLoad {
  /** Requests, of this router and of others. */
  readonly effectiveLoad: number;
  /** Of this router and its peers. */
  readonly requestsInFlight: number;
  readonly prefillTokensQueued: number;
  /** The scraped signals were fresh. */
  readonly fresh: boolean;
}

/**
 * What plugins learn of a decision, and what nobody can know who has the decision alone: routers of the same endpoints get
 * it with the news, so that they learn the same.
 */
export interface Noted {
  /** The endpoint that the request's session is bound to, which was a candidate; absent where it was none. */
  readonly boundTo?: EndpointId;
  /** Whether some candidate held a block of the prompt. */
  readonly warm?: boolean;
  /** The choice took a turn of a rotation. */
  readonly turn?: true;
  readonly load?: NotedLoad;
}

/** A plugin that learns from decisions what is not in them. */
export interface Noter {
  /** About the request that it saw last, which is to go to `chosen`. Changes nothing. */
  note?(chosen: NotedLoadSource): Noted | undefined;
}

/** What a note needs of the endpoint that was chosen. */
export type NotedLoadSource = Omit<NotedLoad, "fresh"> & { readonly freshness: "fresh" | "stale" | "unknown" };

/** The same for peers, to whom a session that is bound to the chosen endpoint is as one that is bound to none. */
export function notedToPeers(made: { readonly endpoint: EndpointId; readonly noted?: Noted }): Noted | undefined {
  const { endpoint, noted } = made;
  if (noted?.boundTo !== endpoint) return noted;
  const { boundTo: _chosen, ...others } = noted;
  return Object.keys(others).length === 0 ? undefined : others;
}
