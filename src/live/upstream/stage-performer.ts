import type { Routed } from "#core/input/decision.ts";
import type { Micros } from "#core/base/units.ts";
import type { PathStage } from "#core/path/stage.ts";
import type { KeepStream } from "../answer/stream-keeper.ts";
import type { AttemptSubject } from "../log/attempt-events.ts";
import type { ForwardedRequest } from "./forwarded-request.ts";
import type { Attempt, AttemptListener } from "./connection/attempt.ts";
import type { AttemptSigns } from "./connection/attempt-signs.ts";
import type { SentContent } from "../request/engine-body.ts";

/** A request's attempts, one after another, as its stages' performers see them. */
export interface ForwardedAttempts extends AttemptSubject {
  /** As the first endpoint got it. */
  readonly firstBody: Buffer;
  /** What is sent next. */
  content: SentContent;
  /** Another endpoint has the request for good; nothing of its answer was passed on. */
  decided(routed: Routed): void;
  /** The stream goes on at another endpoint. */
  continueAt(routed: Routed): void;
}

/** An attempt that stood by, for who goes on with it. */
export interface TakenAttempt {
  readonly attempt: Attempt | undefined;
  readonly signs: AttemptSigns;
  /** All that came goes there, and all that comes. */
  passTo(listener: AttemptListener): undefined;
}

/** Attempts of a request beside the one under way, as a stage has them made. */
export interface StandbyAttempts {
  readonly stage: PathStage;
  /** The attempt that stood by, once, where that is the request's from now on. */
  taken(): TakenAttempt | undefined;
  sweep(at: Micros): void;
}

/** Performs a stage of a request from the first look at it on; undefined of those that do not have it. */
export type StandbyOf = (exchange: ForwardedRequest, attempts: ForwardedAttempts) => StandbyAttempts | undefined;

/** What performs the stages of requests, beside what judges their answers and the one that a decision itself names. */
export interface StagePerformers {
  readonly keep: KeepStream;
  /** A request has one of them at most. */
  readonly standbys: readonly StandbyOf[];
}
