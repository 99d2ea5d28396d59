import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { hitEstimate } from "#drive/hit-estimate.ts";

const EVERY = [0, 1, 2, 3, 4];

test("sum, mean and exact share, of the requests that have both and were asked for", () => {
  const expected = [100, 64, Number.NaN, 0, 9_999];
  const found = [80, 64, 16, Number.NaN, 0];
  assert.deepEqual(hitEstimate(expected, found, [0, 1, 2, 3]), {
    requests: 2,
    expectedTokens: 164,
    cachedTokens: 144,
    sumError: 164 / 144 - 1,
    tokensErrorMean: 10,
    tokensErrorMax: 20,
    exactShare: 0.5,
  });
});

test("without any counts there is no estimate; engines found nothing: there is no ratio", () => {
  assert.equal(hitEstimate([Number.NaN, 16], [16, Number.NaN], [0, 1]), null);
  assert.equal(hitEstimate([16], [16], []), null);
  assert.equal(hitEstimate([16, 0], [0, 0], [0, 1])?.sumError, null);
});

test("laws: errors of opposite sign cancel in the sum only, and an equal pair of columns is exact", () => {
  const column = fc.array(fc.nat(100_000), { minLength: 5, maxLength: 5 });
  fc.assert(
    fc.property(column, column, (one, other) => {
      const [there, back] = [hitEstimate(one, other, EVERY), hitEstimate(other, one, EVERY)];
      assert.ok(there !== null && back !== null);
      assert.equal(there.tokensErrorMean, back.tokensErrorMean);
      assert.ok(Math.abs(there.expectedTokens - there.cachedTokens) <= there.tokensErrorMean * there.requests + 1e-6);
      assert.ok(there.tokensErrorMax >= there.tokensErrorMean);
      assert.equal(there.exactShare === 1, there.tokensErrorMax === 0);
      assert.equal(hitEstimate(one, one, EVERY)?.exactShare, 1);
    }),
  );
});
