import assert from "node:assert/strict";
import { test } from "node:test";
import type { Input } from "#core/input/input.ts";
import type { RouteRequest } from "#core/request/request.ts";
import { EMPTY_CHAIN } from "#core/prompt/block-chain.ts";
import { RunBook } from "#shadow/recorded/recorded-run.ts";
import { HEADER } from "../../trace/trace-samples.ts";

const request: RouteRequest = {
  id: "one",
  model: "m",
  tenant: "",
  session: "",
  sloClass: "",
  priority: 0,
  promptTokens: 10,
  promptTokensExact: true,
  outputTokensMax: undefined,
  sequences: 1,
  blocks: EMPTY_CHAIN,
  profile: "",
};

/** What was observed of a request whose inputs came so, each with where it was sent. */
function observedOf(inputs: readonly (readonly [Input, string?])[]) {
  const book = new RunBook();
  for (const [input, endpoint] of inputs) book.take(input, endpoint);
  return book.close(HEADER).observed[0]!;
}

const finished = (at: number): Input => ({
  kind: "request-finished",
  at,
  requestId: "one",
  outcome: "ok",
  promptTokens: 10,
  cachedTokens: 0,
  outputTokens: 3,
});

test("what a request waited in the gateway is kept apart from the attempts before its last one", () => {
  const observed = observedOf([
    [{ kind: "request-arrived", at: 1_000, request, heldMicros: 2_500 }],
    [{ kind: "request-released", at: 5_000, requestId: "one" }, "a"],
    [{ kind: "attempt-failed", at: 6_000, requestId: "one", fault: "connect" }],
    [{ kind: "request-retried", at: 6_500, requestId: "one" }, "b"],
    [{ kind: "first-token", at: 9_000, requestId: "one" }],
    [finished(12_000)],
  ]);
  const { endpoint, attempts, retriedMicros, queuedMicros, heldMicros, ttftMicros } = observed;
  assert.deepEqual(
    { endpoint, attempts, retriedMicros, queuedMicros, heldMicros, ttftMicros },
    { endpoint: "b", attempts: 2, retriedMicros: 5_500, queuedMicros: 4_000, heldMicros: 2_500, ttftMicros: 8_000 },
  );
});

test("from when another endpoint had computed a prompt to its first token is its handover", () => {
  const { handoverMicros } = observedOf([
    [{ kind: "request-arrived", at: 1_000, request }, "a"],
    [{ kind: "prefill-finished", at: 4_000, requestId: "one", cachedTokens: 0 }],
    [{ kind: "first-token", at: 9_000, requestId: "one" }],
    [finished(12_000)],
  ]);
  assert.equal(handoverMicros, 5_000);
});

test("of several answers side by side the times are those of one, and a simulation makes as many", () => {
  const book = new RunBook();
  book.take({ kind: "request-arrived", at: 1_000, request: { ...request, sequences: 2 } }, "a");
  book.take({ kind: "first-token", at: 2_000, requestId: "one" }, undefined);
  book.take({ ...finished(5_000), outputTokens: 7 } as Input, undefined);
  const { observed, workload } = book.close(HEADER);
  assert.equal(observed[0]!.outputTokens, 4);
  assert.deepEqual([workload[0]!.outputTokens, workload[0]!.sequences], [7, 2]);
});

test("of several prompts each has its share of the tokens that the engine counted, and hits are known of none", () => {
  const book = new RunBook();
  const prompts = { ...request, promptTokens: 90, sequences: 3, tokensByPrompt: [60, 30, 0] };
  book.take({ kind: "request-arrived", at: 1_000, request: prompts }, "a");
  book.take({ kind: "first-token", at: 2_000, requestId: "one" }, undefined);
  book.take({ ...finished(5_000), promptTokens: 120, cachedTokens: 48, outputTokens: 9 } as Input, undefined);
  const { observed, workload } = book.close(HEADER);
  assert.deepEqual([workload[0]!.promptTokens, workload[0]!.tokensByPrompt], [120, [80, 40, 1]]);
  assert.equal(observed[0]!.cachedTokens, NaN);
});

test("a request that was sent at once waited for nothing, and nothing is stated of it", () => {
  const observed = observedOf([
    [{ kind: "request-arrived", at: 1_000, request }, "a"],
    [{ kind: "first-token", at: 2_000, requestId: "one" }],
    [finished(3_000)],
  ]);
  assert.equal("queuedMicros" in observed || "heldMicros" in observed || "handoverMicros" in observed, false);
});
