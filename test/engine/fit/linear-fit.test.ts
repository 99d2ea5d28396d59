import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { fitLinear, type RowWeights } from "#engine/fit/linear-fit.ts";

/** Steps of 9 ms and 0.5 ms per decode, each up to a part `scatter` longer or shorter. */
function steps(scatter: number) {
  const random = randomFor(1, 1);
  const rows = Array.from({ length: 20_000 }, (_, i) => [1, 1 + (i % 16)]);
  const targets = rows.map(([, decodes]) => (9000 + 500 * decodes!) * (1 + scatter * (2 * random.next() - 1)));
  return { rows, targets };
}

function fitted({ rows, targets }: ReturnType<typeof steps>, weights: RowWeights) {
  const { coefficients } = fitLinear(rows, targets, weights);
  const sum = rows.reduce((total, row) => total + row.reduce((one, x, k) => one + x * coefficients[k]!, 0), 0);
  return { coefficients, ofMean: sum / targets.reduce((total, target) => total + target, 0) };
}

test("weighted by the expected duration, chance bends no mean", () => {
  const scattered = steps(0.4);
  const { coefficients, ofMean } = fitted(scattered, "inverse-expected");
  assert.ok(Math.abs(ofMean - 1) < 1e-3, `the fit expects ${ofMean} of the mean`);
  assert.ok(Math.abs(coefficients[0]! - 9000) < 100, `base ${coefficients[0]}`);
  assert.ok(Math.abs(coefficients[1]! - 500) < 10, `per decode ${coefficients[1]}`);
  // A uniform scatter of 40 % has a variance of 5.3 %, by which the harmonic mean is lower.
  assert.ok(fitted(scattered, "inverse-target").ofMean < 0.96);
});

test("without chance all weights find the same line", () => {
  for (const weights of ["equal", "inverse-target", "inverse-expected"] as const) {
    const { coefficients } = fitted(steps(0), weights);
    assert.ok(Math.abs(coefficients[0]! - 9000) < 1e-3 && Math.abs(coefficients[1]! - 500) < 1e-4, weights);
  }
});
