import type { StepResiduals } from "#engine/step-drift.ts";
import type { PredictionError } from "../figure/figures.ts";

/**
 * Part of a model's error that is taken to be another one for another profile. Nearly all of it is a machine that was
 * faster or slower than it was, which all profiles have in common; nobody can measure the part before a second profile has
 * run. Of drawn engines, whose error is all in common, stated orders stay true with it (bench/coverage.ts, part order).
 */
const OWN_PART = 0.1;

/**
 * Standard deviation of the logarithm of each profile's mean E2E, against the profile in force, from what the model itself
 * does wrong: the root mean square of the errors that were measured (on this traffic, and on requests held out of the
 * calibration), the part of them that is a profile's own, for the part of the requests that goes elsewhere than in force.
 */
export function profileErrors(
  elsewhere: readonly number[],
  measured: PredictionError | undefined,
  residuals: StepResiduals | undefined,
): number[] {
  const errors = [
    ...(measured === undefined ? [] : [Math.log(1 + measured.meanRelative)]),
    ...(residuals?.heldOutError === undefined ? [] : [residuals.heldOutError]),
  ].filter(Number.isFinite);
  const square = errors.length === 0 ? 0 : errors.reduce((sum, error) => sum + error ** 2, 0) / errors.length;
  return elsewhere.map((part) => OWN_PART * Math.sqrt(square * Math.max(0, part)));
}
