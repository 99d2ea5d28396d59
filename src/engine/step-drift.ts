import type { Micros } from "#core/base/units.ts";

/**
 * Step times so many times as long as the model has them, by when a step starts: the first factor holds for the first
 * window of time, and after the last one it begins anew.
 */
export interface StepDrift {
  readonly windowMicros: Micros;
  /** Above 0; at least one. */
  readonly factors: Float64Array;
  /** Times at which the machine stands still; they begin anew with the factors. */
  readonly stalls?: Stalls | undefined;
}

export interface Stalls {
  /** Rising, within the time of all factors. */
  readonly at: Float64Array;
  /** How long each lasts; they do not overlap. */
  readonly micros: Float64Array;
}

/** The factor on step times of the window that `at` lies in; after the last window the first one follows again. */
export function driftAt({ windowMicros, factors }: StepDrift, at: Micros): number {
  return factors[Math.floor(at / windowMicros) % factors.length]!;
}

/**
 * What stalls add to a step that would last from `at` for so long: those that begin in it, and what is left of one
 * before.
 */
export function stalledMicros({ windowMicros, factors, stalls }: StepDrift, at: Micros, micros: number): number {
  if (stalls === undefined || stalls.at.length === 0) return 0;
  const from = at % (windowMicros * factors.length);
  let [low, high] = [0, stalls.at.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (stalls.at[middle]! < from) low = middle + 1;
    else high = middle;
  }
  let extra = low === 0 ? 0 : Math.max(0, stalls.at[low - 1]! + stalls.micros[low - 1]! - from);
  for (let i = low; i < stalls.at.length && stalls.at[i]! < from + extra + micros; i++) extra += stalls.micros[i]!;
  return extra;
}

/** How far real steps were from a model's: what a calibration leaves to chance. */
export interface StepResiduals {
  readonly windowMicros: Micros;
  /** Logarithm of observed over predicted step time: a row per endpoint, a value per window, in order of time. */
  readonly windows: readonly (readonly number[])[];
  /** Standard deviation of the logarithm of the level of all of them: how well the fit knows it. */
  readonly levelError: number;
  /** Standard error of what a decode adds to a step, with the step of so many decodes as it is; left out for none. */
  readonly batchError?: { readonly decodes: number; readonly perDecodeMicros: number } | undefined;
  /** Standard errors of single parameters as shares of them. */
  readonly delayError: number;
  readonly prefillError: number;
  /** Of single requests; left out where nobody knows them. */
  readonly firstTokens?: FirstTokenResiduals | undefined;
  /** Left out where nobody looked for them. */
  readonly stalls?: SeenStalls | undefined;
  /** What another run of the same engine is off by beyond that; left out for none, as in the run itself. */
  readonly betweenRuns?: BetweenRuns | undefined;
  /** How far the run in question lay from all that were fitted, where it was one of them: never in a file. */
  readonly thisRun?: SeenRun | undefined;
  /**
   * Logarithm of predicted over observed mean E2E on requests that the fit had not seen; left out where there were
   * none.
   */
  readonly heldOutError?: number | undefined;
}

/** First tokens of single requests: when each was predicted, rising, and how much later it came than others like it. */
export interface FirstTokenResiduals {
  readonly predictedMicros: readonly Micros[];
  /** As many; median about 0. */
  readonly laterMicros: readonly Micros[];
}

/** Times at which a machine stood still while it had work. */
export interface SeenStalls {
  /** For how long the machine was watched, all endpoints together. */
  readonly watchedMicros: Micros;
  /** How many there were. */
  readonly count: number;
  /** How long some of them lasted, rising; empty where there were none. */
  readonly micros: readonly Micros[];
  /** Part of them that another endpoint had at the same time, in [0, 1]. */
  readonly shared: number;
}

/** Standard deviations, from one run of an engine to another, of logarithms. */
export interface BetweenRuns {
  /** Of all step times together. */
  readonly level: number;
  /** The same between runs of the same hours; `level` where it is left out. */
  readonly session?: number | undefined;
  /** Of the delay outside the engine. */
  readonly delay: number;
  /** The same between runs of the same hours; `delay` where it is left out. */
  readonly sessionDelay?: number | undefined;
  /** Of the prefill's part beyond the level. */
  readonly prefill: number;
  /** Of how late single first tokens are and how often the machine stands still. */
  readonly noise: number;
  /** Runs that were compared; below 2 the figures above are stated, not seen. */
  readonly runs: number;
  /** Each of them, in the order of EngineSource; left out for one. */
  readonly seen?: readonly SeenRun[] | undefined;
}

/** One of several runs that an engine was fitted to, against all of them. */
export interface SeenRun {
  /** Logarithm of how many times as long as in all of them steps were, and its standard error. */
  readonly level: number;
  readonly error: number;
  /** The same of the delay outside the engine, and of the prefill's part beyond the level; left out where they do not show. */
  readonly delay?: number | undefined;
  readonly prefill?: number | undefined;
  /** What it showed of them where the engine has none, of which there is no multiple. */
  readonly delayMicros?: Micros | undefined;
  readonly perPrefillTokenMicros?: Micros | undefined;
}
