import assert from "node:assert/strict";
import { test } from "node:test";
import type { Decision } from "#core/decision.ts";
import type { AttemptFailed, RequestRetried } from "#core/input.ts";
import { type AttemptHost, afterFault } from "#core/retry/after-fault.ts";
import { RetryPolicy } from "#core/retry/retry-policy.ts";

const COMMON = {
  at: 0,
  sequence: 0,
  requestId: "r",
  attempt: 2,
  profile: "p",
  breakdown: { candidates: [], scorers: [], values: new Float64Array(), totals: new Float64Array() },
};
const routed = { kind: "routed", ...COMMON, endpoint: "b", reason: "only", hitTokens: 0, usedLedger: false } as unknown;
const rejected = { kind: "rejected", ...COMMON, reason: "no-endpoint" } as unknown;

function host(decision: unknown, burst: number) {
  const kinds: string[] = [];
  const made = {
    retries: new RetryPolicy({ attemptsMax: 3, continuationsMax: 2, ratio: 0, burst }),
    now: () => 7,
    accept: (input: AttemptFailed | RequestRetried) => {
      kinds.push(input.kind);
      assert.equal(input.at, 7);
      return decision as Decision;
    },
  };
  return { kinds, host: made as AttemptHost };
}

test("a fault is an input, and so is the retry that follows; each retry is paid for once", () => {
  const { host: one, kinds } = host(routed, 1);
  assert.deepEqual(afterFault(one, "r", "cut", 1), { kind: "retry", decision: routed });
  assert.deepEqual(kinds, ["attempt-failed", "request-retried"]);
  assert.deepEqual(afterFault(one, "r", "cut", 1), { kind: "give-up", why: "budget" });
  assert.deepEqual(kinds, ["attempt-failed", "request-retried", "attempt-failed"]);
});

test("time, attempts and a fleet without a taker end it, and cost nothing", () => {
  const { host: one, kinds } = host(rejected, 1);
  assert.deepEqual(afterFault(one, "r", "timeout", 1), { kind: "give-up", why: "time" });
  assert.deepEqual(afterFault(one, "r", "connect", 3), { kind: "give-up", why: "attempts" });
  assert.deepEqual(afterFault(one, "r", "connect", 2), { kind: "give-up", why: "no-endpoint" });
  assert.deepEqual(kinds, ["attempt-failed", "attempt-failed", "attempt-failed", "request-retried"]);
  assert.equal(one.retries.denial("connect", 1), undefined, "nothing was spent");
});
