import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { randomFor } from "#core/base/random.ts";
import { ExplainedShare } from "#shadow/reproduce/explained-share.ts";

/** Decisions among four by chances, judged by those of a policy. */
function judged(truth: readonly number[], policy: readonly number[], count = 20_000): ExplainedShare {
  const agreement = new ExplainedShare();
  const random = randomFor(3, 4);
  const squares = policy.reduce((sum, chance) => sum + chance * chance, 0);
  for (let i = 0; i < count; i++) {
    let left = random.next();
    const chosen = truth.findIndex((chance) => (left -= chance) < 0);
    agreement.add(truth.length, policy[chosen] ?? 0, squares);
  }
  return agreement;
}

const chances = fc
  .array(fc.double({ min: 0.01, max: 1, noNaN: true }), { minLength: 4, maxLength: 4 })
  .map((parts) => parts.map((part) => part / parts.reduce((sum, one) => sum + one, 0)));

test("no policy gains more than the one with the true chances", () => {
  fc.assert(
    fc.property(chances, chances, (truth, other) => {
      assert.ok(judged(truth, other, 4_000).gain <= judged(truth, truth, 4_000).gain + 0.03);
    }),
    { numRuns: 40 },
  );
});

test("one that decides so explains as much of it as it would itself; chance alone gains nothing", () => {
  const truth = [0.5, 0.3, 0.15, 0.05];
  const { share, own, blind } = judged(truth, truth);
  assert.ok(Math.abs(share - own) < 0.01, `${share} ${own}`);
  assert.equal(blind, 0.25);
  assert.equal(judged(truth, [0.25, 0.25, 0.25, 0.25]).gain, 0);
});

test("a policy without chance that is always right gains all there is, one that is never right nothing", () => {
  assert.deepEqual([judged([1, 0, 0, 0], [1, 0, 0, 0]).gain, judged([1, 0, 0, 0], [1, 0, 0, 0]).share], [0.75, 1]);
  assert.equal(judged([0, 1, 0, 0], [1, 0, 0, 0]).gain, 0);
});
