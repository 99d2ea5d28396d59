import type { Routed } from "#core/input/decision.ts";
import type { Micros } from "#core/base/units.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { PathStage } from "#core/path/stage.ts";
import type { KeepStream } from "../answer/stream-keeper.ts";
import type { Trouble } from "#core/path/wait-verdict.ts";
import type { Answer, AnswerHead, Delivery, KeptAnswer } from "../answer/answer.ts";
import type { Usage } from "../answer/answer-json.ts";
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

/** A part that another endpoint does ahead of the one that answers, or beside it, as a decision names it. */
export interface AheadPart {
  readonly stage: PathStage & {
    /** With whom the request is. */
    readonly endpoint: EndpointId;
    /** Prompt tokens that the first endpoint had cached, once that is known. */
    readonly cachedTokens: number | undefined;
    /** The decision is over; `by`: who answers now, if anybody. */
    close(by: EndpointId | undefined): void;
  };
  /** Where the request goes now, and with which body. `failed`: the endpoint beside did, while nothing else came. */
  next(path: string, body: Buffer, failed: (fault: Fault) => void): { endpoint: EndpointId; body: Buffer };
  /** Reads the answer of the first endpoint; undefined where it is the client's: it turns the request down. */
  answerOf(delivery: Delivery, head: AnswerHead): Answer | undefined;
  /** The endpoint that answers failed, with an error of its own where it is `kept`. */
  answerFailed(fault: Fault, kept: KeptAnswer | undefined): void;
  /** Whether the endpoint beside the one that answers is to be left. */
  trouble(at: Micros, reads: boolean): Trouble | undefined;
  usageOf(usage: Usage | undefined): Usage | undefined;
  /** The attempt is over. */
  release(): void;
}

/** Performs the stage that a decision itself names; undefined of decisions that name none. */
export type AheadOf = (exchange: ForwardedRequest, routed: Routed) => AheadPart | undefined;
/** Performs a stage of a request from its first attempt on; undefined of those that do not have it. */
export type StageOf = (exchange: ForwardedRequest, attempts: ForwardedAttempts) => PathStage | undefined;
/** The same where that is attempts that stand by, from the first look at it on. */
export type StandbyOf = (exchange: ForwardedRequest, attempts: ForwardedAttempts) => StandbyAttempts | undefined;

/** What performs the stages of requests. */
export interface StagePerformers {
  readonly keep: KeepStream;
  /** In the order in which a path asks them. */
  readonly stages: readonly StageOf[];
  readonly aheadOf: AheadOf;
  /** A request has one of them at most. */
  readonly standbys: readonly StandbyOf[];
}
