import type { Permit } from "./admission/permit.ts";
import type { WaitingRequest } from "./admission/waiting-request.ts";
import type { EndpointId } from "./endpoint/endpoint.ts";
import type { EndpointState } from "./endpoint/endpoint-state.ts";
import type { Insertion } from "./prefix/prefix-index.ts";
import type { RouteRequest } from "./request/request.ts";
import type { RolloutMembership } from "./rollouts.ts";
import type { Micros } from "./base/units.ts";

/** A request between its arrival and its end. */
export interface Pending {
  /** As it is sent now: where it goes on behind a part of its answer, that part is prompt. */
  request: RouteRequest;
  /** As it arrived. */
  readonly asked: RouteRequest;
  /** The rollout that it takes part in, for all its attempts. */
  readonly membership: RolloutMembership | undefined;
  /** Endpoints that this request was sent to since it arrived or last went on; a retry leaves them out. */
  tried: EndpointId[];
  attempts: number;
  /** Output tokens that other endpoints made, behind which it goes on. */
  continuedTokens: number;
  /** Where the current attempt is, and what it will release; undefined between attempts. */
  state: EndpointState | undefined;
  insertion: Insertion | undefined;
  /** The endpoint that computes its prompt, until that is done; undefined where `state` does. */
  prefill: PendingPrefill | undefined;
  /** The blocks of an attempt before did not reach `state`. */
  transferFailed: boolean;
  /** A second endpoint that has it too, while nothing of an answer came. */
  standby: PendingStandby | undefined;
  sentAt: Micros;
  firstTokenAt: Micros | undefined;
  /** What it holds since it was let in; undefined before. */
  permit: Permit | undefined;
  /** Its place in the queue; undefined where it waits for nothing. */
  waiting: WaitingRequest | undefined;
}

/** The first of two phases while it is under way. */
export interface PendingPrefill {
  readonly state: EndpointState;
  readonly insertion: Insertion | undefined;
  readonly sentAt: Micros;
  /** Nothing was sent to `state` yet. */
  readonly isFirst: boolean;
}

/** A request at a second endpoint. */
export interface PendingStandby {
  readonly state: EndpointState;
  readonly insertion: Insertion | undefined;
  readonly sentAt: Micros;
  /** As it was charged there. */
  readonly newTokens: number;
}

/** It may go to a second endpoint: one endpoint alone has it, and nothing of an answer came. */
export function mayHaveStandby({ state, prefill, standby, firstTokenAt, continuedTokens }: Pending): boolean {
  const isSent = state !== undefined && prefill === undefined && standby === undefined;
  return isSent && firstTokenAt === undefined && continuedTokens === 0;
}

/**
 * Endpoints that a retry would leave out if the phase under way failed now: while the prompt is computed elsewhere, who
 * answers has failed nothing.
 */
export function triedIfItFails({ tried, prefill, state }: Pending): readonly EndpointId[] {
  if (prefill === undefined) return tried;
  return [...tried.filter((id) => id !== state?.id), prefill.state.id];
}
