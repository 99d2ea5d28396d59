import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { percentile } from "#core/base/quantile.ts";
import { summarize } from "#drive/distribution-summary.ts";

const values = fc.array(fc.double({ min: -1e6, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 200 });

describe("percentiles", () => {
  it("are the linear interpolation between closest ranks", () => {
    const sorted = Float64Array.of(10, 20, 30, 40);
    // numpy.percentile([10, 20, 30, 40], [0, 25, 50, 90, 99, 100])
    const expected = [10, 17.5, 25, 37, 39.7, 40];
    for (const [i, p] of [0, 25, 50, 90, 99, 100].entries())
      assert.ok(Math.abs(percentile(sorted, p) - (expected[i] ?? 0)) < 1e-9, `p${p}`);
  });

  it("grow with p, stay within the values, and hit them at whole ranks", () => {
    fc.assert(
      fc.property(
        values,
        fc.double({ min: 0, max: 100, noNaN: true }),
        fc.double({ min: 0, max: 100, noNaN: true }),
        (all, p, q) => {
          const sorted = Float64Array.from(all).sort();
          const [low, high] = [percentile(sorted, Math.min(p, q)), percentile(sorted, Math.max(p, q))];
          assert.ok(low <= high + 1e-6);
          assert.ok(low >= (sorted[0] ?? 0) - 1e-6 && high <= (sorted.at(-1) ?? 0) + 1e-6);
          if (sorted.length > 1)
            for (const [rank, value] of sorted.entries())
              assert.ok(
                Math.abs(percentile(sorted, (100 * rank) / (sorted.length - 1)) - value) <
                  1e-3 + Math.abs(value) * 1e-6,
              );
        },
      ),
      { numRuns: 50 },
    );
  });

  it("leave out what did not happen, and are null for nothing", () => {
    const { count, mean, p50, max } = summarize([Number.NaN, 3, 1, Number.NaN, 2]);
    assert.deepEqual([count, mean, p50, max], [3, 2, 2, 3]);
    assert.deepEqual(summarize([Number.NaN]), { count: 0, mean: null, p50: null, p90: null, p99: null, max: null });
  });
});
