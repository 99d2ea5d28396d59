import assert from "node:assert/strict";
import { test } from "node:test";
import type { Fault } from "#core/endpoint/fault.ts";
import { Budget } from "#core/path/path-router.ts";
import { RETRIES, type RetryPolicy } from "#core/path/retry-policy.ts";
import type { StageSettings } from "#core/path/stage-kind.ts";

function opened(settings: StageSettings): { readonly policy: RetryPolicy; readonly budget: Budget } {
  const budget = new Budget(RETRIES.budget, settings);
  return { policy: RETRIES.open(budget), budget };
}

const denial = (policy: RetryPolicy, fault: Fault, times: number, timesMax?: number) =>
  policy.denial({ fault, times, timesMax, request: undefined });

test("retries are denied by time, by attempts and by budget, and asking spends nothing", () => {
  const { policy, budget } = opened({ attemptsMax: 3, retryRatio: 0.5, retryBurst: 2 });
  for (let i = 0; i < 9; i++) assert.equal(denial(policy, "connect", 1), undefined);
  assert.equal(denial(policy, "timeout", 1), "time");
  assert.equal(denial(policy, "connect", 3), "attempts");
  policy.spend();
  policy.spend();
  assert.equal(denial(policy, "connect", 1), "budget");
  budget.earn();
  assert.equal(denial(policy, "connect", 1), "budget");
  budget.earn();
  assert.equal(denial(policy, "hung", 2), undefined);
  for (let i = 0; i < 99; i++) budget.earn();
  policy.spend();
  policy.spend();
  assert.equal(denial(policy, "connect", 1), "budget", "no more than the burst is saved up");
});

test("another budget gives nothing that was not saved up, and takes what has no room in it", () => {
  const options = { attemptsMax: 3, retryRatio: 0, retryBurst: 3 };
  const { policy, budget } = opened(options);
  for (let i = 0; i < 3; i++) policy.spend();
  budget.change({ ...options, retryBurst: 10 });
  assert.equal(denial(policy, "connect", 1), "budget");
  const { policy: other, budget: another } = opened(options);
  another.change({ ...options, retryBurst: 1 });
  another.change(options);
  other.spend();
  assert.equal(denial(other, "connect", 1), "budget");
});

test("an answer goes on within its own number of times and the budget of retries, which its first token gives back", () => {
  const { policy } = opened({ attemptsMax: 1, retryRatio: 0, retryBurst: 1 });
  assert.equal(denial(policy, "cut", 1, 2), undefined);
  assert.equal(denial(policy, "cut", 2, 2), "attempts");
  assert.equal(denial(policy, "timeout", 0, 2), "time");
  policy.spend();
  assert.equal(denial(policy, "cut", 0, 2), "budget");
  policy.refund();
  policy.refund();
  assert.equal(denial(policy, "cut", 0, 2), undefined);
  policy.spend();
  assert.equal(denial(policy, "cut", 0, 2), "budget", "no more is given back than can be saved up");
});
