import type { Fault } from "../endpoint/fault.ts";
import type { Outcome } from "../endpoint/outcome.ts";
import type { Micros } from "../base/units.ts";
import type { PathEvent } from "./path-event.ts";
import type { FailureOf } from "./path-router.ts";
import type { PathState } from "./path-state.ts";

/**
 * A part of a request's life that it may have or not: a second endpoint, a part done ahead elsewhere, another model,
 * an answer that goes on elsewhere. The path asks all that a request has, in their order, and knows no more of them than
 * this; what a stage decides it performs by a host of its own.
 */
export interface PathStage {
  /** While so, one endpoint does not do all of the request: it is not moved again, and no second one is asked for it. */
  readonly binds?: boolean;
  /** While so, another attempt stands by that takes over. */
  readonly standsBy?: boolean;
  /** Times that the request went on elsewhere behind what its client has. */
  readonly times?: number;
  /** And how often it may. */
  readonly timesMax?: number;
  /** Of the attempt under way; undefined where it is that of all attempts. */
  readonly failureOf?: FailureOf | undefined;
  /** How long after an attempt was sent something is done about a first token that is late; `late` does it. */
  helpsAfter?(state: PathState): Micros;
  late?(): void;
  /** An answer goes on elsewhere that broke by such a fault, as a stage had it. */
  wentOn?(fault: Fault): void;
  /**
   * The attempt failed before its client had a byte: what comes of it; undefined of a stage to which that is nothing, and
   * policy and router are asked where it is to none. A stage by which another attempt stands by is asked first. The router
   * gets to know of the failure from whoever answers: one that puts the retry off reports it at once
   * (`RequestPath.attemptFailed`), and has the path ask (`asked`) when it is due. A limit of time that passes before, and a
   * client that leaves, end the request (`ended`): what would have asked is called off there. Whoever calls `asked` from a
   * timer hands what it throws to its host's `bug`.
   */
  takesOver?(fault: Fault): StageAnswer | undefined;
  /** The answer broke behind a part that the client has, and may go on elsewhere: the same, and else it does not. */
  goesOn?(fault: Fault): StageAnswer | undefined;
  /** What an endpoint of this stage does ahead of the one that answers is done: the router is informed. */
  aheadDone?(): void;
  /** The attempt under way makes its first token. */
  firstToken?(): void;
  /** The answer of the attempt under way is the client's. */
  answers?(): void;
  /** The request is over. */
  ended?(outcome: Outcome): void;
}

/** The event that answers what a stage is asked, "later" where it dispatches that itself once it knows. */
export type StageAnswer = PathEvent | "later";

/** Of a request without any. */
export const NO_STAGES: readonly PathStage[] = [];
