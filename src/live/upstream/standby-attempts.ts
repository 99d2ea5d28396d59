import type { Routed } from "#core/input/decision.ts";
import type { Micros } from "#core/base/units.ts";
import type { PathStage } from "#core/path/stage.ts";
import type { ForwardedRequest } from "./forwarded-request.ts";
import type { Attempt, AttemptListener } from "./connection/attempt.ts";
import type { AttemptSigns } from "./connection/attempt-signs.ts";
import type { SentContent } from "../request/engine-body.ts";

/** A request's first attempts, of which one that stands by may become the one under way. */
export interface FirstAttempts {
  readonly content: SentContent;
  /** The endpoint that stood by has the request for good; nothing of its answer was passed on. */
  decided(routed: Routed): void;
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

/** Undefined where nothing ever stands by for such a request. */
export type StandbyOf = (exchange: ForwardedRequest, first: FirstAttempts) => StandbyAttempts | undefined;
