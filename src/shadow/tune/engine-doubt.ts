import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { StepResiduals } from "#engine/step-drift.ts";
import type { PredictionError } from "../figure/figures.ts";

/** How far an engine model may be off, for simulations of policies that never ran. */
export interface EngineDoubt {
  /** Logarithm of predicted over observed mean E2E of the profile in force; undefined where nothing was observed. */
  readonly measured: number | undefined;
  /** Standard deviation of the logarithm of all step times, of prefill's rate and of the delay outside engines. */
  readonly level: number;
  readonly prefill: number;
  readonly delay: number;
}

/** Of an engine that nothing was observed of: 30 % off is two standard deviations. */
const UNKNOWN = 0.15;
/** No engine is known better. */
const KNOWN_MIN = 0.03;
/** A model that is further off on the very traffic that it is asked about is wrong. */
const MODEL_ERROR_MAX = 0.25;

/** How far an engine may be off, by what its calibration and its error on this very traffic show. */
export function engineDoubt(residuals: StepResiduals | undefined, error: PredictionError | undefined): EngineDoubt {
  const measured = error === undefined ? undefined : Math.log(1 + error.meanRelative);
  const own = (stated: number, between: number) => Math.hypot(stated, between);
  const floor =
    measured === undefined && residuals === undefined ? UNKNOWN : Math.max(KNOWN_MIN, Math.abs(measured ?? 0));
  return {
    measured,
    level: Math.max(floor, own(residuals?.levelError ?? 0, residuals?.betweenRuns?.level ?? 0)),
    prefill: Math.max(floor, own(residuals?.prefillError ?? 0, residuals?.betweenRuns?.prefill ?? 0)),
    delay: Math.max(floor, own(residuals?.delayError ?? 0, residuals?.betweenRuns?.delay ?? 0)),
  };
}

/** The residuals that replicas are drawn from, as wide as the doubt is. */
export function doubtedResiduals(residuals: StepResiduals | undefined, doubt: EngineDoubt): StepResiduals {
  const own: StepResiduals = residuals ?? {
    windowMicros: MICROS_PER_SECOND,
    windows: [[0]],
    levelError: 0,
    delayError: 0,
    prefillError: 0,
  };
  const { betweenRuns: _all, ...rest } = own;
  return { ...rest, levelError: doubt.level, prefillError: doubt.prefill, delayError: doubt.delay };
}

/** Why no policy can be chosen on a model; undefined where it can. */
export function modelRefusal({ measured }: EngineDoubt): string | undefined {
  if (measured === undefined || Math.abs(measured) <= Math.log(1 + MODEL_ERROR_MAX)) return undefined;
  const off = `${measured > 0 ? "+" : ""}${Math.round(100 * (Math.exp(measured) - 1))} %`;
  return (
    `the engine model is ${off} off in the mean E2E of what the profile in force did (at most ${100 * MODEL_ERROR_MAX} % is ` +
    "trusted): calibrate one from a trace of these engines"
  );
}
