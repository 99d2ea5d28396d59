import type { Fault } from "../endpoint/fault.ts";
import type { GiveUpReason } from "./path-router.ts";

import type { Carriage } from "./path-state.ts";

/** How an answer ends that is whole: served, or turned down as the client's own mistake. */
export type WholeOutcome = "ok" | "refused";

/** An event without more than its name. */
export interface PlainEvent {
  readonly kind:
    | "body-read"
    /** The router is about to be informed of it. */
    | "arrived"
    /** What another endpoint had to do ahead of the one that answers is done. */
    | "ahead-done"
    /** The first output token. */
    | "first-token"
    /** What is held of a stream may go out without a token: too much is held, or it is an error for the client. */
    | "hold-full"
    /** There are bytes to go out, the first of this answer. */
    | "first-bytes"
    /** The answer is too long to be held until it is whole. */
    | "let-through"
    /** The client is to see the head of a stream that is still held. */
    | "hold-over"
    /** The engine ended a stream that the client has a part of with an error event of its own, which was passed on. */
    | "engine-error"
    /** A limit of time ran out. */
    | "timed-out"
    | "client-left"
    /** The client does not read what waits for it. */
    | "client-stalled"
    /** The code failed on this request. */
    | "defect";
}

/** An endpoint was chosen: for a request that arrived, or in place of one that failed it or broke off. */
export interface EndpointChosen {
  readonly kind: "routed" | "rerouted";
  /** Another one has the request before the one that answers. */
  readonly ahead: boolean;
}

/**
 * A stage has another attempt take the place of the one under way, of which the client has no byte. standby: one that
 * has the request too, since nothing came of this one. anew: one at another answer, since this one's is given up.
 */
export interface Replaced {
  readonly kind: "replaced";
  readonly by: "standby" | "anew";
}

/** The gateway answers the request itself; `deadline` where it came too late. */
export interface Refused {
  readonly kind: "refused";
  readonly outcome: "refused" | "timeout";
}

/** An answer's head came that is fit for the request. */
export interface AnswerBegan {
  readonly kind: "answer-began";
  readonly carriage: Carriage;
}

/** The attempt is no good, and the client has no byte. */
export interface AttemptFailed {
  readonly kind: "attempt-failed";
  readonly fault: Fault;
  /** The endpoint's own error is kept. */
  readonly kept: boolean;
}

/** The mark of completion came, such as `[DONE]`. */
export interface Marked {
  readonly kind: "marked";
  readonly outcome: WholeOutcome;
}

/** The endpoint's message is whole. */
export interface AnswerEnded {
  readonly kind: "answer-ended";
  readonly outcome: WholeOutcome;
  /** Answers of this kind end with a mark of completion, so that its absence means a cut. */
  readonly promisesMark: boolean;
}

/** The endpoint's message broke, or it is left. */
export interface UpstreamBroke {
  readonly kind: "upstream-broke";
  readonly fault: Fault;
  /** Of a stream that could go on at another endpoint, behind what the client has of it. */
  readonly continues: boolean;
}

/** No other endpoint is tried. */
export interface Denied {
  readonly kind: "denied";
  readonly why: GiveUpReason;
}

/** What happens to a request. */
export type PathEvent =
  | PlainEvent
  | EndpointChosen
  | Replaced
  | Refused
  | AnswerBegan
  | AttemptFailed
  | Marked
  | AnswerEnded
  | UpstreamBroke
  | Denied;

export type EventKind = PathEvent["kind"];

const plain = (kind: PlainEvent["kind"]): PlainEvent => ({ kind });

/** Made once each: most of what happens to a request needs no object of its own. */
export const BODY_READ = plain("body-read");
export const ARRIVED = plain("arrived");
export const ROUTED: EndpointChosen = { kind: "routed", ahead: false };
export const ROUTED_AHEAD: EndpointChosen = { kind: "routed", ahead: true };
export const AHEAD_DONE = plain("ahead-done");
export const FIRST_TOKEN = plain("first-token");
export const HOLD_FULL = plain("hold-full");
export const FIRST_BYTES = plain("first-bytes");
export const LET_THROUGH = plain("let-through");
export const HOLD_OVER = plain("hold-over");
export const ENGINE_ERROR = plain("engine-error");
export const TIMED_OUT = plain("timed-out");
export const CLIENT_LEFT = plain("client-left");
export const CLIENT_STALLED = plain("client-stalled");
export const REROUTED: EndpointChosen = { kind: "rerouted", ahead: false };
export const REROUTED_AHEAD: EndpointChosen = { kind: "rerouted", ahead: true };
export const STANDBY_ANSWERS: Replaced = { kind: "replaced", by: "standby" };
export const ASKED_ANEW: Replaced = { kind: "replaced", by: "anew" };
export const DEFECT = plain("defect");

/** The endpoint could not be asked, or its answer is none. */
export const attemptFailed = (fault: Fault): AttemptFailed => ({ kind: "attempt-failed", fault, kept: false });
