import type { BreakerState } from "../endpoint/breaker.ts";
import type { EndpointId } from "../endpoint/endpoint.ts";
import type { Outcome } from "../endpoint/outcome.ts";
import type { Noted } from "./noted.ts";
import type { BlockChain } from "../prompt/block-chain.ts";
import type { Micros } from "../base/units.ts";

/** Something that happened at another router that sends requests to the same endpoints. */
export type PeerNews =
  | PeerCharged
  | PeerPrefilled
  | PeerFirstToken
  | PeerProgress
  | PeerFailed
  | PeerReleased
  | PeerHeld
  | PeerBreaker
  | PeerUsed
  | PeerWindow;

/** It sent a request to an endpoint. In a snapshot: such a request is in flight there. */
export interface PeerCharged {
  readonly kind: "charged";
  /** The peer's number of the request, the same for all its attempts; it counts up from 1 in one life of the peer. */
  readonly request: number;
  /** 1 for the first try. */
  readonly attempt: number;
  readonly endpoint: EndpointId;
  /** The profile that decided. */
  readonly profile: string;
  /** As of Routed. */
  readonly reason: string;
  /** As of RouteRequest. */
  readonly model: string;
  readonly tenant: string;
  /** As of RouteRequest: limits of a user, and of output tokens, count it. */
  readonly user?: string;
  readonly outputTokensMax?: number;
  readonly session: string;
  readonly sequences: number;
  readonly promptTokens: number;
  /** They are a count and no estimate. */
  readonly promptTokensExact: boolean;
  /** Prompt tokens that the peer expected to be computed, at least 1. */
  readonly newTokens: number;
  /** The whole prompt; empty where it is not known, as in a snapshot. */
  readonly blocks: BlockChain;
  /** Another endpoint computes the prompt, of which it lacks so many tokens. In a snapshot: it does so still. */
  readonly prefill?: { readonly endpoint: EndpointId; readonly newTokens: number; readonly noted?: Noted };
  /** What the peer's plugins noted; the endpoint that the session is bound to where it is not the chosen one. */
  readonly noted?: Noted;
  /** In a snapshot, tokens so far of a request past its first token; absent before it. */
  readonly outputTokens?: number;
}

/** The prompt of a request is computed, `prefillMicros` after it was sent to the endpoint that did so. */
export interface PeerPrefilled {
  readonly kind: "prefilled";
  readonly request: number;
  readonly prefillMicros: Micros;
}

/** A request's first token came so long after it was sent. */
export interface PeerFirstToken {
  readonly kind: "first-token";
  readonly request: number;
  readonly ttftMicros: Micros;
}

export interface PeerProgress {
  readonly kind: "progress";
  readonly request: number;
  /** So far. */
  readonly outputTokens: number;
}

/** An attempt failed, or the request was taken elsewhere; another charge may follow. */
export interface PeerFailed {
  readonly kind: "failed";
  readonly request: number;
}

/** A request is over. */
export interface PeerReleased {
  readonly kind: "released";
  readonly request: number;
  readonly outcome: Outcome;
  /** The engine's own counts, where they are known. */
  readonly promptTokens: number | undefined;
  readonly outputTokens: number | undefined;
  /** From its first token to its end; undefined where there was none. */
  readonly decodeMicros: Micros | undefined;
}

/** An endpoint is believed to hold a prefix: an answer behind its prompt, or what was sent before this router began. */
export interface PeerHeld {
  readonly kind: "held";
  readonly endpoint: EndpointId;
  /** Of a prompt, the session that its client named, "" for none; undefined of an answer. */
  readonly session: string | undefined;
  readonly blocks: BlockChain;
}

/** The peer's breaker of an endpoint opened for a pause, or closed. */
export interface PeerBreaker {
  readonly kind: "breaker";
  readonly endpoint: EndpointId;
  readonly state: Exclude<BreakerState, "half-open">;
  /** 0 where it closed. */
  readonly pauseMicros: Micros;
}

/** Requests of one tenant, user and model that the peer let in while it could report nothing, and that are over. */
export interface PeerUsed {
  readonly kind: "used";
  readonly model: string;
  readonly tenant: string;
  readonly user?: string;
  /** At least 1. */
  readonly requests: number;
  /** Of all of them. */
  readonly promptTokens: number;
  readonly outputTokens: number;
}

/**
 * In a snapshot: what a subject has used of a limit, by all routers that the peer knows or knew of; what the peer has in
 * flight is in it. Taken over from the first snapshot of a life alone.
 */
export interface PeerWindow {
  readonly kind: "window";
  /** The limit's name, and what it measures: one that measures something else takes nothing over. */
  readonly limit: string;
  readonly measure: string;
  /** As of LimitWindow. */
  readonly subject: string;
  readonly passedMicros: Micros;
  /** As of LimitWindow: of what was kept while no router was there. */
  readonly ageMicros?: Micros;
  readonly counts: readonly number[];
}

/** News of one peer, all at once. */
export interface PeerReported {
  readonly kind: "peer-reported";
  readonly at: Micros;
  /** Unique among the routers of a fleet. */
  readonly peer: string;
  /** Which life of the peer it is: a later one is larger. */
  readonly epoch: number;
  /** Counts the peer's reports of that life, from 1. One that comes twice, or after a later one, changes nothing. */
  readonly sequence: number;
  /** Its news are all that is in flight there, each as `charged`; what is not among it is over. */
  readonly snapshot?: true;
  readonly news: readonly PeerNews[];
}

/** The peer is gone, and so is all that it had in flight. */
export interface PeerLeft {
  readonly kind: "peer-left";
  readonly at: Micros;
  readonly peer: string;
}
