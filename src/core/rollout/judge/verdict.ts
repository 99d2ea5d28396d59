import type { CanaryReading } from "./canary-reading.ts";
import type { Ailment } from "./health.ts";
import type { GuardrailReading } from "./guardrail.ts";
import type { TimeFigure, TimeMetric } from "./outcome.ts";

/** Where the simulator expects an arm's figure to be, less the control's, in microseconds. */
export interface Prediction {
  readonly arm: number;
  readonly metric: TimeMetric;
  readonly figure: TimeFigure;
  readonly low: number;
  readonly high: number;
}

/** An arm's figure less the control's, microseconds, with an interval that holds at every look together. */
export interface Difference {
  readonly arm: number;
  readonly metric: TimeMetric;
  readonly figure: TimeFigure;
  /** What was counted as one: blocks of windows, or clusters. */
  readonly count: number;
  readonly mean: number;
  readonly low: number;
  readonly high: number;
  /** Estimated standard deviation of one of them, after what the predictions explain. */
  readonly deviation: number;
  /** At 1 / level or above the interval leaves out 0. */
  readonly evidence: number;
  /** The part of the rollout's level that this figure has. */
  readonly level: number;
  /** Variance of the difference less what the predictions explain, over the variance without; 1 where there are none. */
  readonly varianceLeft: number;
}

/** A measured difference whose interval has nothing in common with the predicted one. */
export interface Contradiction {
  readonly prediction: Prediction;
  readonly difference: Difference;
}

export interface Verdict {
  readonly differences: readonly Difference[];
  readonly crossings: readonly GuardrailReading[];
  readonly contradictions: readonly Contradiction[];
  /** What makes the comparison worthless; empty where nothing does. */
  readonly ailments: readonly Ailment[];
  /** Of a canary that has a next step. */
  readonly canary?: CanaryReading;
}
