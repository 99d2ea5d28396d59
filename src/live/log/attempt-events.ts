import type { Fault } from "#core/endpoint/fault.ts";
import type { GiveUpReason } from "#core/path/path-router.ts";
import { RETRY_DENIALS } from "#core/path/retry-policy.ts";
import type { FaultEvent } from "./fault-log.ts";

/** The attempt that an event is about. */
export interface AttemptSubject {
  readonly requestId: string;
  readonly endpoint: string;
  /** Attempts so far, this one included. */
  readonly attempts: number;
}

const FAULT_TEXTS: Readonly<Record<Fault, string>> = {
  connect: "connect: no connection, or it closed before an answer",
  status: "status: it answered with a server error",
  saturated: "saturated: it is at its limit",
  draining: "draining: it is shutting down",
  cut: "cut: the connection broke",
  timeout: "timeout: a time limit of the gateway ran out",
  garbage: "garbage: what it answered is no answer to such a request",
  hung: "hung: it accepts requests and answers none",
  asleep: "asleep: it was put to sleep, and lets requests wait",
};

/** An attempt failed before the client got a byte, and the request went to another endpoint. */
export function retriedEvent(failed: AttemptSubject, fault: Fault, to: string): FaultEvent {
  return { ...subject(failed), kind: "attempt-failed", detail: FAULT_TEXTS[fault], done: `sent to ${to}` };
}

/** A stream broke after the client got a part of it, and goes on at another endpoint, behind its tokens or its text. */
export function continuedEvent(
  broken: AttemptSubject,
  fault: Fault,
  to: string,
  outputTokens: number,
  byText: boolean,
): FaultEvent {
  const event = subject(broken);
  return {
    ...event,
    kind: "stream-continued",
    detail: FAULT_TEXTS[fault],
    done: byText ? `goes on at ${to} behind its text, which may not be exact` : `goes on at ${to}`,
    figures: { ...event.figures, outputTokens },
  };
}

const DENIAL_TEXTS: Readonly<Record<GiveUpReason, string>> = {
  ...RETRY_DENIALS,
  "no-endpoint": "no other endpoint can take it",
};

/** The last attempt failed, and the client got an error of this status; `why` is why no other endpoint was tried. */
export function givenUpEvent(
  failed: AttemptSubject,
  fault: Fault,
  why: keyof typeof DENIAL_TEXTS,
  status: number,
): FaultEvent {
  const kind = why === "budget" ? "retry-denied" : "attempt-failed";
  return {
    ...subject(failed),
    kind,
    detail: FAULT_TEXTS[fault],
    done: `not retried, ${DENIAL_TEXTS[why]}: the client got ${status === 200 ? "an error in its stream" : status}`,
  };
}

/** The gateway ended a request that was sent; `fault` where its attempt had failed and no other one was sent yet. */
export function turnedAwayEvent(
  sent: AttemptSubject,
  fault: Fault | undefined,
  why: string,
  status: number,
): FaultEvent {
  const kind = fault === undefined ? "turned-away" : "attempt-failed";
  const got = status === 200 ? "a closed connection" : status;
  const detail = fault === undefined ? why : `${FAULT_TEXTS[fault]}; ${why}`;
  return { ...subject(sent), kind, detail, done: `its client got ${got}` };
}

/** The only attempt that a proxy made failed, and its client gets what the engine answered. */
export function passedOnEvent(failed: AttemptSubject, fault: Fault): FaultEvent {
  return { ...subject(failed), kind: "attempt-failed", detail: FAULT_TEXTS[fault], done: "the proxy passed it on" };
}

/** An answer broke after the client got a part of it. */
export function cutEvent(cut: AttemptSubject, fault: Fault, outputTokens: number | undefined): FaultEvent {
  const event = subject(cut);
  return {
    ...event,
    kind: "answer-cut",
    detail: FAULT_TEXTS[fault],
    done: CUT,
    figures: outputTokens === undefined ? event.figures : { ...event.figures, outputTokens },
  };
}

/** The same of an answer beside inference, of which there is one attempt. */
export function besideCutEvent(requestId: string, endpoint: string): FaultEvent {
  return { requestId, endpoint, kind: "answer-cut", detail: FAULT_TEXTS.cut, done: CUT };
}

const CUT = "the client got what had come, then an error or a closed connection, never the mark of a whole answer";

function subject({ requestId, endpoint, attempts }: AttemptSubject) {
  return { requestId, endpoint, figures: { attempts } };
}
