import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type QuantileFigures, Quantiles } from "#trace/transform/quantiles.ts";

/** The value with a share of all at or below it. */
function exact(sorted: readonly number[], share: number): number {
  return sorted[Math.ceil(share * sorted.length) - 1]!;
}

function figuresOf(values: readonly number[]): QuantileFigures {
  const quantiles = new Quantiles();
  for (const value of values) quantiles.add(value);
  return quantiles.figures()!;
}

test("percentiles of whole numbers below 128 are exact, of larger ones within 0.8 %, ends and mean are exact", () => {
  const below128 = fc.integer({ min: 0, max: 127 });
  const any = fc.oneof(below128, fc.integer({ min: 128, max: 100_000 }), fc.maxSafeInteger().map(Math.abs));
  for (const [value, error] of [
    [below128, 0],
    [any, 1 / 128],
  ] as const) {
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 300 }), (values) => {
        const sorted = values.toSorted((a, b) => a - b);
        const figures = figuresOf(values);
        assert.deepEqual([figures.count, figures.min, figures.max], [sorted.length, sorted[0], sorted.at(-1)]);
        assert.equal(figures.mean, values.reduce((sum, one) => sum + one, 0) / values.length);
        for (const [share, found] of [
          [0.5, figures.p50],
          [0.9, figures.p90],
          [0.99, figures.p99],
        ] as const) {
          const wanted = exact(sorted, share);
          assert.ok(Math.abs(found - wanted) <= error * wanted, `p${100 * share}: ${found} for ${wanted}`);
        }
      }),
    );
  }
});

test("what is no number is left out, and of nothing there are no figures", () => {
  assert.equal(new Quantiles().figures(), undefined);
  assert.deepEqual(figuresOf([NaN, 5]), { count: 1, mean: 5, min: 5, p50: 5, p90: 5, p99: 5, max: 5 });
});
