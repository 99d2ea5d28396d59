import assert from "node:assert/strict";
import { test } from "node:test";
import { ReplicaBudget } from "#shadow/question/replica-budget.ts";

/** Evaluations one after another on a machine that takes so long for a request. */
function steady(cpuMicros: number, requests: number, perRequest: number): number[] {
  const budget = new ReplicaBudget(cpuMicros);
  return Array.from({ length: 4 }, () => {
    const replicas = budget.replicasFor(requests);
    budget.spent((1 + replicas) * requests, (1 + replicas) * requests * perRequest);
    return replicas;
  });
}

test("replicas stay within half the time until the next evaluation, are few before anything is known, and bounded", () => {
  assert.deepEqual(steady(1e12, 1_000, 20), [3, 20, 20, 20]);
  // 3 s for 8,000 requests at 20 us: 18 simulations, one of which is the engine as it was fitted.
  assert.deepEqual(steady(6e6, 8_000, 20), [3, 17, 17, 17]);
  for (const perRequest of [1, 7, 40, 300]) {
    const [, replicas = 0] = steady(6e6, 8_000, perRequest);
    assert.ok(replicas === 0 || (1 + replicas) * 8_000 * perRequest <= 3e6, `${replicas} at ${perRequest} us`);
  }
});

test("where there is no time for three, there is none", () => {
  assert.deepEqual(steady(6e6, 8_000, 100), [3, 0, 0, 0]);
});

test("a machine that got faster is noticed, even without replicas", () => {
  const budget = new ReplicaBudget(6e6);
  budget.spent(8_000, 8e6);
  assert.equal(budget.replicasFor(8_000), 0);
  budget.spent(8_000, 0.16e6);
  assert.equal(budget.replicasFor(8_000), 17);
});
