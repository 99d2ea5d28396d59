import type { Micros } from "#core/units.ts";

/**
 * Step times so many times as long as the model has them, by when a step starts: the first factor holds for the first
 * window of time, and after the last one it begins anew.
 */
export interface StepDrift {
  readonly windowMicros: Micros;
  /** Above 0; at least one. */
  readonly factors: Float64Array;
}

export function driftAt({ windowMicros, factors }: StepDrift, at: Micros): number {
  return factors[Math.floor(at / windowMicros) % factors.length]!;
}

/** How far real steps were from a model's: what a calibration leaves to chance. */
export interface StepResiduals {
  readonly windowMicros: Micros;
  /** Logarithm of observed over predicted step time: a row per endpoint, a value per window, in order of time; mean 0. */
  readonly windows: readonly (readonly number[])[];
  /** Standard deviation of the logarithm of the level of all of them: how well the fit knows it. */
  readonly levelError: number;
  /** Standard errors of single parameters as shares of them. */
  readonly delayError: number;
  readonly prefillError: number;
  /** Of single requests; left out where nobody knows them. */
  readonly firstTokens?: FirstTokenResiduals | undefined;
}

/** First tokens of single requests: when each was predicted, rising, and how much later it came than others like it. */
export interface FirstTokenResiduals {
  readonly predictedMicros: readonly Micros[];
  /** As many; median about 0. */
  readonly laterMicros: readonly Micros[];
}
