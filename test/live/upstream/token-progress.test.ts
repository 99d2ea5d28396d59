import assert from "node:assert/strict";
import { test } from "node:test";
import type { Input } from "#core/input/input.ts";
import type { GatewayCounters } from "#live/base/gateway-counters.ts";
import type { GatewayLimits } from "#live/http/limits.ts";
import { TokenProgress } from "#live/upstream/token-progress.ts";

/** Reports are due after 10 tokens, or 2 ms with some. */
function progress(): { made: TokenProgress; inputs: Input[]; counters: { progressInputs: number } } {
  const inputs: Input[] = [];
  const counters = { progressInputs: 0 };
  const made = new TokenProgress({
    router: { accept: (input: Input) => void inputs.push(input) },
    limits: { progressTokens: 10, progressMillis: 2 } as GatewayLimits,
    counters: counters as GatewayCounters,
    requestId: "r1",
  });
  return { made, inputs, counters };
}

test("the first token is reported as such, and counts as reported", () => {
  const { made, inputs, counters } = progress();
  made.first(1_000);
  assert.deepEqual(inputs, [{ kind: "first-token", at: 1_000, requestId: "r1" }]);
  assert.deepEqual([made.firstAt, made.seen, counters.progressInputs], [1_000, 1, 0]);
  made.sweep(9_000);
  assert.equal(inputs.length, 1, "nothing new to report");
});

test("tokens are worth a report once there are so many since the last one", () => {
  const { made, inputs } = progress();
  made.first(1_000);
  assert.equal(made.reaches(10), false);
  assert.equal(made.reaches(11), true);
  made.report(1_500);
  assert.deepEqual(inputs.at(-1), { kind: "progress", at: 1_500, requestId: "r1", outputTokens: 11 });
  assert.equal(made.reaches(20), false);
  assert.equal(made.reaches(21), true);
});

test("a sweep reports new tokens once the time since the last report is up, and each but once", () => {
  const { made, inputs, counters } = progress();
  made.first(1_000);
  made.reaches(4);
  made.sweep(2_999);
  assert.equal(inputs.length, 1, "not due yet");
  made.sweep(3_000);
  assert.deepEqual(inputs.at(-1), { kind: "progress", at: 3_000, requestId: "r1", outputTokens: 4 });
  made.sweep(9_000);
  assert.equal(inputs.length, 2, "nothing new since");
  made.reaches(5);
  made.sweep(9_500);
  assert.deepEqual(inputs.at(-1), { kind: "progress", at: 9_500, requestId: "r1", outputTokens: 5 });
  assert.equal(counters.progressInputs, 2);
});
