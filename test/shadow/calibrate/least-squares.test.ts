import assert from "node:assert/strict";
import { test } from "node:test";
import { type LeastSquaresFit, leastSquares } from "#shadow/calibrate/least-squares.ts";

/** Measured values of groups, each of which has a mean of its own. */
function fitted(groups: readonly (readonly number[])[]): LeastSquaresFit {
  const values = groups.flat();
  const jacobian = groups.map((_, g) =>
    Float64Array.from(groups.flatMap((group, of) => group.map(() => Number(of === g)))),
  );
  const at = (x: readonly number[]) => ({
    residuals: Float64Array.from(
      groups.flatMap((group, g) => group.map(() => x[g]!)),
      (mean, i) => mean - values[i]!,
    ),
    jacobian,
  });
  const search = leastSquares(
    at,
    groups.map(() => 1),
  );
  for (;;) {
    const next = search.next();
    if (next.done === true) return next.value;
  }
}

test("means are found, with the standard errors of so many values less the variables that were fitted to them", () => {
  // 4 values with 2 means: of 4 squares of 1, 2 are free.
  const { x, errors } = fitted([
    [9, 11],
    [19, 21],
  ]);
  for (const [i, mean] of [10, 20].entries()) {
    assert.ok(Math.abs(x[i]! - mean) < 1e-3, String(x[i]));
    assert.ok(Math.abs(errors[i]! - 1) < 1e-3, `${errors[i]}, not 1`);
  }
  const [one] = fitted([[9, 11, 9, 11]]).errors;
  assert.ok(Math.abs(one! - Math.sqrt(1 / 3)) < 1e-3, `${one}, not the root of a third`);
});
