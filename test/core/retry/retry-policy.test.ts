import assert from "node:assert/strict";
import { test } from "node:test";
import { RetryPolicy } from "#core/retry/retry-policy.ts";

test("retries are denied by time, by attempts and by budget, and asking spends nothing", () => {
  const policy = new RetryPolicy({ attemptsMax: 3, continuationsMax: 2, ratio: 0.5, burst: 2 });
  for (let i = 0; i < 9; i++) assert.equal(policy.denial("connect", 1), undefined);
  assert.equal(policy.denial("timeout", 1), "time");
  assert.equal(policy.denial("connect", 3), "attempts");
  policy.spend();
  policy.spend();
  assert.equal(policy.denial("connect", 1), "budget");
  policy.earn();
  assert.equal(policy.denial("connect", 1), "budget");
  policy.earn();
  assert.equal(policy.denial("hung", 2), undefined);
  for (let i = 0; i < 99; i++) policy.earn();
  policy.spend();
  policy.spend();
  assert.equal(policy.denial("connect", 1), "budget", "no more than the burst is saved up");
});
