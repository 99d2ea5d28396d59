import type { Endpoint, EndpointId, Load } from "../endpoint/endpoint.ts";
import type { RemovedBlocks, StoredBlocks } from "../prefix/block-report.ts";
import { STAGE_ASKING, type StageAsking, type StageInput } from "../request/stage-inputs.ts";
import type { HangReason } from "../endpoint/hang-reason.ts";
import type { ObservedPlace } from "../request/observed-place.ts";
import type { PeerLeft, PeerReported } from "../request/peer-news.ts";
import type { PrefillInput } from "../request/prefill-input.ts";
import type { Outcome } from "../endpoint/outcome.ts";
import type { PolicySpec, ProfileSpec } from "../plugin/spec.ts";
import type { KvEventsLostReason } from "../endpoint/knowledge.ts";
import type { RouteRequest } from "../request/request.ts";
import type { RolloutInput, RolloutLook, RolloutPredicted, RolloutShared } from "../rollout/rollout-input.ts";
import type { Micros } from "../base/units.ts";
import type { Fault } from "../endpoint/fault.ts";

/**
 * Everything that can reach the router, in the order in which it is accepted. A trace is this list.
 *
 * Exogenous inputs do not depend on what the router decided and survive any what-if. Endogenous inputs are consequences
 * of decisions: they hold only for the policy that made them. They name a request, never the endpoint that served it.
 */
export type Input = ExogenousInput | EndogenousInput;

export type ExogenousInput =
  | { readonly kind: "endpoint-joined"; readonly at: Micros; readonly endpoint: Endpoint }
  /** New facts about an endpoint that is here already: models, capacity, labels. */
  | { readonly kind: "endpoint-changed"; readonly at: Micros; readonly endpoint: Endpoint }
  /** It gets no new requests. What it has it finishes, unless it is `lost`: nobody accepts a connection there any more. */
  | { readonly kind: "endpoint-left"; readonly at: Micros; readonly endpoint: EndpointId; readonly lost?: true }
  /** No new requests for it; those in flight go on. */
  | { readonly kind: "endpoint-cordoned"; readonly at: Micros; readonly endpoint: EndpointId }
  | { readonly kind: "endpoint-uncordoned"; readonly at: Micros; readonly endpoint: EndpointId }
  /**
   * Its health checks fail from now on, so that it gets no new requests while enough others may serve; or do not any
   * more.
   */
  | {
      readonly kind: "endpoint-checked";
      readonly at: Micros;
      readonly endpoint: EndpointId;
      readonly healthy: boolean;
    }
  /**
   * Its engine sleeps from now on: it would accept requests and let them wait until somebody wakes it; or does not any
   * more. With `emptied` it has given up what its cache held.
   */
  | {
      readonly kind: "endpoint-slept";
      readonly at: Micros;
      readonly endpoint: EndpointId;
      readonly asleep: boolean;
      readonly emptied?: true;
    }
  /** It was judged hung: no new requests for it while another one may serve. */
  | {
      readonly kind: "endpoint-suspended";
      readonly at: Micros;
      readonly endpoint: EndpointId;
      readonly reason: HangReason;
    }
  /** It is let back slowly: one request in flight, twice as many more with each served, no bound after `servedUntilWell`. */
  | {
      readonly kind: "endpoint-resumed";
      readonly at: Micros;
      readonly endpoint: EndpointId;
      readonly servedUntilWell: number;
    }
  /** One profile is added to those of the policy, or takes the place of one; the policy's number stays. */
  | { readonly kind: "profile-changed"; readonly at: Micros; readonly name: string; readonly profile: ProfileSpec }
  | PolicyChanged
  | Exclude<RolloutInput, RolloutLook | RolloutPredicted | RolloutShared>
  /** Prompts are cut into blocks of another size from now on: what the index holds can never match again. */
  | { readonly kind: "block-size-changed"; readonly at: Micros; readonly blockTokens: number }
  | RequestArrived;

/** Another policy from now on, whole: profiles that it does not have are gone. Requests in flight are not touched. */
export interface PolicyChanged extends PolicySpec {
  readonly kind: "policy-changed";
  readonly at: Micros;
  /** Where it came from, in one word, for those who read a trace: "file", "admin", "rollback". */
  readonly source: string;
}

export type EndogenousInput =
  | { readonly kind: "load-observed"; readonly at: Micros; readonly endpoint: EndpointId; readonly load: Load }
  | FirstToken
  | PrefillInput
  | { readonly kind: "progress"; readonly at: Micros; readonly requestId: string; readonly outputTokens: number }
  | AttemptFailedInput
  | RequestRetried
  | RequestMoved
  | StageInput
  | RequestReleased
  | RequestFinished
  | AnswerKnown
  | BlocksStored
  | BlocksRemoved
  /** What other routers of the same endpoints did. */
  | PeerReported
  | PeerLeft
  | RolloutLook
  | RolloutPredicted
  | RolloutShared
  | BlocksCleared
  | KvEventsAlive
  /** Some of an endpoint's events are missing for good; those to come are followed. */
  | { readonly kind: "kv-events-missed"; readonly at: Micros; readonly endpoint: EndpointId }
  /** They are not followed any more. */
  | {
      readonly kind: "kv-events-lost";
      readonly at: Micros;
      readonly endpoint: EndpointId;
      readonly reason: KvEventsLostReason;
    };

/** Those that a decision answers. */
export type AskingInput = RequestArrived | RequestReleased | RequestAgain;

/** Those about a request that was let in before, so that it waits for nothing. */
export type RequestAgain = RequestRetried | StageAsking;

const ASKING: ReadonlySet<Input["kind"]> = new Set<AskingInput["kind"]>([
  "request-arrived",
  "request-released",
  "request-retried",
  ...STAGE_ASKING,
]);

/** Whether the router answers this input with a decision. */
export function isAsking(input: Input): input is AskingInput {
  return ASKING.has(input.kind);
}

export interface RequestArrived {
  readonly kind: "request-arrived";
  readonly at: Micros;
  readonly request: RouteRequest;
  /** Where another router sent it, which is where it is whatever the policy would have chosen; absent where this one decides. */
  readonly observed?: ObservedPlace;
  /** From when its body was read until now: its prompt became tokens. Absent below a millisecond. */
  readonly heldMicros?: Micros;
}

/** The first non-empty token of the answer was seen. */
export interface FirstToken {
  readonly kind: "first-token";
  readonly at: Micros;
  readonly requestId: string;
}

/** The chosen endpoint failed before the client got a byte; its charge is released and its blocks withdrawn. */
export interface AttemptFailedInput {
  readonly kind: "attempt-failed";
  readonly at: Micros;
  readonly requestId: string;
  readonly fault: Fault;
}

/** Asks for another endpoint for a request whose attempt failed; those already tried are left out. */
export interface RequestRetried {
  readonly kind: "request-retried";
  readonly at: Micros;
  readonly requestId: string;
}

/**
 * Who carries the request took it to another endpoint than the router chose: a proxy that goes down the list which it was
 * given. Its charge and its blocks are that endpoint's from now on.
 */
export interface RequestMoved {
  readonly kind: "request-moved";
  readonly at: Micros;
  readonly requestId: string;
  readonly endpoint: EndpointId;
}

/** A request that waits is decided on again: its turn has come, or its time is over. */
export interface RequestReleased {
  readonly kind: "request-released";
  readonly at: Micros;
  readonly requestId: string;
}

/** The end of a request, once and on every path. */
export interface RequestFinished {
  readonly kind: "request-finished";
  readonly at: Micros;
  readonly requestId: string;
  readonly outcome: Outcome;
  /** The engine's own counts, of output tokens else the events that carried one; undefined where neither is known. */
  readonly promptTokens: number | undefined;
  readonly cachedTokens: number | undefined;
  readonly outputTokens: number | undefined;
  /**
   * Two words per block that the answer filled behind the prompt's full blocks, chained on from them: what the engine's
   * cache holds beyond the prompt. Absent where the answer's tokens are not known or fill no block.
   */
  readonly answerHashes?: Int32Array;
  /** They are still being found out: an `answer-known` follows, whatever comes of it. */
  readonly answerFollows?: true;
}

/** The blocks of an answer whose request has ended, where its end announced that they follow. */
export interface AnswerKnown {
  readonly kind: "answer-known";
  readonly at: Micros;
  readonly requestId: string;
  /** As of RequestFinished; absent where they could not be found out. */
  readonly answerHashes?: Int32Array;
}

/** An engine reported blocks of its KV cache. */
export interface BlocksStored extends StoredBlocks {
  readonly kind: "blocks-stored";
  readonly endpoint: EndpointId;
}

export interface BlocksRemoved extends RemovedBlocks {
  readonly kind: "blocks-removed";
  readonly endpoint: EndpointId;
}

/** An engine's cache is empty. */
export interface BlocksCleared {
  readonly kind: "blocks-cleared";
  readonly at: Micros;
  readonly endpoint: EndpointId;
  /** It reported that itself, in order with what it stores; otherwise the engine was found to be another one. */
  readonly inOrder?: true;
}

/** An endpoint's KV events are followed from now on. */
export interface KvEventsAlive {
  readonly kind: "kv-events-alive";
  readonly at: Micros;
  readonly endpoint: EndpointId;
  /** Whatever its cache holds was or will be reported; otherwise it had content before. */
  readonly isComplete: boolean;
}
