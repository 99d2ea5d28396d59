import type { EngineConfig } from "#engine/config.ts";
import type { StepResiduals } from "#engine/step-drift.ts";
import type { ModelError } from "./model-error.ts";
import type { Parameters } from "./parameters.ts";

/**
 * accepted: in use now. few-requests, not-identified: the window does not suffice, and the engine in use is kept.
 * worse: it is further off than the engine in use on the requests held out. too-long: given up after EVALUATIONS_MAX
 * replays. failed: the fit broke.
 */
export const FIT_OUTCOMES = ["accepted", "few-requests", "not-identified", "worse", "too-long", "failed"] as const;
export type FitOutcome = (typeof FIT_OUTCOMES)[number];

/** What came of one attempt. Plain data, so that it can leave a thread. */
export interface FitReport {
  readonly outcome: FitOutcome;
  /** Why, and which traffic would show more. */
  readonly detail: readonly string[];
  /** Requests that were looked at, and those of the window whose times are not usable, by reason. */
  readonly requests: number;
  readonly left: Readonly<Record<string, number>>;
  /** In use from now on. */
  readonly engine: EngineConfig;
  /** What that engine leaves to chance; undefined where no fit estimated it. */
  readonly residuals?: StepResiduals | undefined;
  /** Of the engine in use; undefined where its step time is not made of coefficients. */
  readonly parameters: Parameters | undefined;
  /** Standard errors of what was fitted; only of a fit that is accepted. */
  readonly errors: Partial<Parameters>;
  /**
   * Error of the engine in use on the latest requests, which no fit has seen; undefined where there are too few. Of one
   * that is accepted, of the same fit without them.
   */
  readonly heldOut: ModelError | undefined;
  readonly heldOutByEndpoint: Readonly<Record<string, ModelError>>;
  /** Of the one that was turned down, on the same requests. */
  readonly heldOutRefused: ModelError | undefined;
}
