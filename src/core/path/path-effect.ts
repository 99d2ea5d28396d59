import type { Fault } from "../endpoint/fault.ts";
import type { Outcome } from "../endpoint/outcome.ts";

import type { Denied, EventKind } from "./path-event.ts";
import type { PathState } from "./path-state.ts";

/** What is done with the endpoint. */
export interface UpstreamEffect {
  readonly kind:
    /** Sends the request to the endpoint that was chosen; asks: `attempt-failed` where it cannot go out. */
    | "send"
    /** Ends the attempt, wherever it is, and stops listening to it. */
    | "release-attempt";
}

/** Informs the router that the attempt failed, and asks policy and router for another endpoint: `rerouted` or `denied`. */
export interface AskRetry {
  readonly kind: "ask-retry";
  readonly fault: Fault;
}

/** Asks policy and router for an endpoint where the answer goes on behind what the client has: `rerouted` or `denied`. */
export interface AskResume {
  readonly kind: "ask-resume";
  readonly fault: Fault;
}

/** What the client gets of an answer. */
export interface AnswerEffect {
  readonly kind:
    /** The head of a stream, ahead of its body. */
    | "show-head"
    /** Whatever is held of the answer, behind its head where the client has none. */
    | "write-held"
    /** Head and body of an answer that was held until it was whole, and its end. */
    | "write-whole";
}

export interface ErrorEffect {
  readonly kind:
    /** The endpoint's own error, whole. */
    | "write-kept"
    /** An error of the gateway's own, whole. */
    | "write-error"
    /** An error event at the end of a stream that the client has a part of. */
    | "write-error-event";
  readonly fault: Fault;
}

/** What router, metrics and log learn of an attempt. */
export interface PlainReport {
  readonly kind: "report-first-token" | "report-timeout";
}

/** The router learns that another endpoint did its part ahead of the one that answers. */
export interface ReportAhead {
  readonly kind: "report-ahead";
}

/** An answer goes on at another endpoint: the stage that had it so learns that it is sent there. */
export interface ReportContinued {
  readonly kind: "report-continued";
  readonly fault: Fault;
}

export interface FaultReport {
  readonly kind: "report-retried" | "report-cut";
  readonly fault: Fault;
}

export interface ReportGivenUp {
  readonly kind: "report-given-up";
  readonly fault: Fault;
  readonly why: Denied["why"];
}

/** The gateway ends a request itself that was sent and is not answered: `afterFault` of its attempt, where that had failed. */
export interface ReportTurnedAway {
  readonly kind: "report-turned-away";
  readonly afterFault: Fault | undefined;
}

export type ReportEffect = PlainReport | FaultReport | ReportGivenUp;
export type AttemptEffect = UpstreamEffect | AnswerEffect | ErrorEffect | ReportEffect;

/** What is done with the client's side. */
export interface PlainClientEffect {
  readonly kind:
    /** The error that the gateway answers a request with that it does not serve. */
    | "write-refusal"
    /** The end of a body that came in pieces. */
    | "end-client"
    /** Closes the client's connection, so that it sees a cut answer. */
    | "destroy-client"
    | "report-client-left"
    | "report-client-stalled"
    /** Takes the request from among those in flight. */
    | "forget";
}

/** The request's one end. */
export interface Finish {
  readonly kind: "finish";
  readonly outcome: Outcome;
  /** The router knows the request, and is informed. */
  readonly known: boolean;
  /** Whose counts of tokens go with it: the answer's own, those seen so far, or none. */
  readonly counts: "answer" | "seen" | "none";
}

/** An event came that has no meaning in this state: a defect. */
export interface ReportIllegal {
  readonly kind: "report-illegal";
  readonly state: PathState["kind"];
  readonly event: EventKind;
}

export type ClientEffect = PlainClientEffect | ReportTurnedAway | Finish | ReportIllegal;

/** What a transition has done; carried out in order. Effects that ask stand last, and an event answers them. */
export type PathEffect = AttemptEffect | AskRetry | AskResume | ReportAhead | ReportContinued | ClientEffect;
