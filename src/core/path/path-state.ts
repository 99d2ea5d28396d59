import type { Fault } from "../endpoint/fault.ts";
import type { Outcome } from "../endpoint/outcome.ts";

/** How an endpoint's answer is carried: event by event, held until it is whole, or through unread. */
export type Carriage = "stream" | "whole" | "through";

/**
 * What came of a stream so far. silent: nothing that may go out. due: what is held may go out, though no token came.
 * token: the router knows of the first token. complete, turned-down: the mark of completion came, so that a connection
 * that breaks now cuts nothing; turned-down behind an error of the client's own making.
 */
export type Content = "silent" | "due" | "token" | "complete" | "turned-down";

/** The request's body is coming. */
export interface Reading {
  readonly kind: "reading";
  readonly attempts: 0;
}

/** It is parsed, its prompt tokenized and hashed; the router does not know it. */
export interface Preparing {
  readonly kind: "preparing";
  readonly attempts: 0;
}

/** The router knows it and chooses. From here on it must be informed of the end. */
export interface Deciding {
  readonly kind: "deciding";
  readonly attempts: 0;
}

/** Sent to an endpoint that does a part of it ahead; the one that answers gets it after that. */
export interface Ahead {
  readonly kind: "ahead";
  readonly attempts: number;
  /** As of Waiting. */
  readonly shown: boolean;
}

/** An attempt is under way and nothing of its answer came. */
export interface Waiting {
  readonly kind: "waiting";
  /** Attempts so far, this one included. */
  readonly attempts: number;
  /** The client has the head of an answer, and no byte of a body: of this attempt or of one before it. */
  readonly shown: boolean;
}

/** An answer began, and the client has no byte of it: another endpoint may still give a better one. */
export interface Holding {
  readonly kind: "holding";
  readonly attempts: number;
  readonly shown: boolean;
  readonly carriage: Carriage;
  readonly content: Content;
}

/** The client has bytes of this answer; it can go on elsewhere at most, behind what the client has. */
export interface Passing {
  readonly kind: "passing";
  readonly attempts: number;
  readonly carriage: Carriage;
  readonly content: Content;
}

/** The attempt failed before the client got a byte; whether there is another one is being asked. */
export interface Failed {
  readonly kind: "failed";
  readonly attempts: number;
  readonly shown: boolean;
  readonly fault: Fault;
  /** The endpoint's own error is kept, to be passed on where no endpoint does better. */
  readonly kept: boolean;
}

/** The attempt broke off after the client got a part of its answer; whether that goes on elsewhere is being asked. */
export interface Severed {
  readonly kind: "severed";
  readonly attempts: number;
  readonly fault: Fault;
}

/** The client has a part of an answer, and another endpoint was asked for the rest; the client has none of that. */
export interface Resuming {
  readonly kind: "resuming";
  readonly attempts: number;
  readonly content: "silent" | "token";
}

/** All is written and reported; the client has yet to take the rest. */
export interface Ended {
  readonly kind: "ended";
  readonly attempts: number;
  readonly outcome: Outcome;
}

/** The client's side is closed as well. */
export interface Closed {
  readonly kind: "closed";
  readonly attempts: number;
  readonly outcome: Outcome;
}

/** Where an inference request is between its head and its client's last byte. */
export type PathState =
  | Reading
  | Preparing
  | Deciding
  | Ahead
  | Waiting
  | Holding
  | Passing
  | Failed
  | Severed
  | Resuming
  | Ended
  | Closed;

/** Where a request begins: at a gateway, and where the router is asked at once. */
export const READING: Reading = { kind: "reading", attempts: 0 };
export const DECIDING: Deciding = { kind: "deciding", attempts: 0 };

/** An attempt waits, or its answer is on the way. */
export function isUnderWay({ kind }: PathState): boolean {
  return kind === "ahead" || kind === "waiting" || kind === "holding" || kind === "passing" || kind === "resuming";
}

/** An attempt is over, and another one may follow. */
export function isBetween({ kind }: PathState): boolean {
  return kind === "failed" || kind === "severed";
}
