import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { EMPTY_BREAKDOWN } from "#core/breakdown.ts";
import type { Rejected, Routed } from "#core/decision.ts";
import type { AskingInput, Input } from "#core/input.ts";
import type { RouteRequest } from "#core/request.ts";
import { readDecision, writeDecision } from "#live/worker/decision-mail.ts";
import { readAny, readInput, writeAny, writeInput } from "#live/worker/input-mail.ts";
import { MessageReader } from "#live/worker/message-reader.ts";
import { MessageWriter } from "#live/worker/message-writer.ts";
import { readRequest, writeRequest } from "#live/worker/request-mail.ts";
import { readSummary, writeSummary } from "#live/worker/summary-mail.ts";
import { chain, request } from "../../core/state.ts";

/** Writes in one thread's writer, reads in another's reader; both keep what they learnt. */
class Line {
  readonly writer = new MessageWriter();
  readonly reader = new MessageReader();

  pass<T>(write: (to: MessageWriter) => void, read: (from: MessageReader, kind: number) => T): T {
    this.writer.begin(7);
    write(this.writer);
    const { message } = this.writer;
    this.reader.room(message.length).set(message);
    return read(this.reader, this.reader.byte());
  }
}

const text = fc.oneof(fc.string(), fc.constantFrom("", "llama-3.1-8b", "ü€𝄞", "a".repeat(30_000)));

test("a request is the same in the other thread", () => {
  const line = new Line();
  const requests = fc.record({
    id: text,
    model: text,
    tenant: text,
    session: text,
    sloClass: text,
    profile: text,
    priority: fc.double({ noNaN: true }),
    promptTokens: fc.nat(),
    promptTokensExact: fc.boolean(),
    outputTokensMax: fc.option(fc.nat(), { nil: undefined }),
    sequences: fc.nat(),
    blocks: fc.nat(300).map((length) => chain(3, length)),
  });
  const also = fc.record(
    {
      user: fc.constantFrom("user-1", "user-2"),
      cacheRead: fc.constant(false as const),
      ownProfile: fc.constant(true as const),
      undivided: fc.constant(true as const),
      timeoutMicros: fc.integer({ min: 1, max: 1e12 }),
      slo: fc.constantFrom({ ttftMicros: 500_000 }, { tpotMicros: 30_000 }, { ttftMicros: 1, tpotMicros: 2 }),
      subset: fc.array(text, { maxLength: 3 }),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(requests, also, (plain, more) => {
      const given: RouteRequest = { ...plain, ...more };
      assert.deepEqual(
        line.pass((to) => writeRequest(to, given), readRequest),
        given,
      );
    }),
  );
});

test("more names than are remembered pass too", () => {
  const line = new Line();
  for (let i = 0; i < 5_000; i++) {
    const given = request({ id: "r", model: `model-${i}` });
    assert.equal(line.pass((to) => writeRequest(to, given), readRequest).model, given.model);
  }
  const again = request({ id: "r", model: "model-3" });
  assert.equal(line.pass((to) => writeRequest(to, again), readRequest).model, "model-3");
});

test("decisions come back as they were, but for what they were made of", () => {
  const line = new Line();
  const head = { at: 5, sequence: 9, requestId: "r", attempt: 2, profile: "gnomon", policyVersion: 3 };
  const rollout = { name: "try", arm: "other", window: 7 };
  const routed: Routed = {
    kind: "routed",
    ...head,
    rollout,
    endpoint: "http://a",
    reason: "tie",
    hitTokens: 16,
    prefixSource: "precise",
    usedLedger: true,
    priority: -2,
    breakdown: EMPTY_BREAKDOWN,
  };
  const pass = (decision: Routed | Rejected) =>
    line.pass(
      (to) => writeDecision(to, decision, "because"),
      (from) => readDecision(from, "r"),
    );
  assert.deepEqual(pass(routed), { ...routed, why: "because" });
  const { priority: _, rollout: __, ...plain } = routed;
  assert.deepEqual(pass({ ...plain, usedLedger: false, prefixSource: "approximate" }), {
    ...plain,
    usedLedger: false,
    prefixSource: "approximate",
    why: "because",
  });
  const rejected: Rejected = { kind: "rejected", ...head, reason: "rate-limit", breakdown: EMPTY_BREAKDOWN };
  assert.deepEqual(pass(rejected), rejected);
  assert.deepEqual(pass({ ...rejected, limit: "l", retryMicros: 7 }), { ...rejected, limit: "l", retryMicros: 7 });
});

test("inputs of every kind that a request's path reports pass", () => {
  const counts = { promptTokens: 1, cachedTokens: undefined, outputTokens: 0 };
  const answerHashes = Int32Array.from([1, -2, 3, 2 ** 31 - 1]);
  const inputs: Exclude<Input, AskingInput>[] = [
    { kind: "first-token", at: 1, requestId: "r" },
    { kind: "progress", at: 1, requestId: "r", outputTokens: 64 },
    { kind: "request-finished", at: 1, requestId: "r", outcome: "ok", ...counts },
    { kind: "request-finished", at: 1, requestId: "r", outcome: "aborted", ...counts, answerHashes },
    { kind: "request-finished", at: 1, requestId: "r", outcome: "ok", ...counts, answerFollows: true },
    { kind: "answer-known", at: 1, requestId: "r" },
    { kind: "answer-known", at: 1, requestId: "r", answerHashes },
    { kind: "attempt-failed", at: 1, requestId: "r", fault: "hung" },
    { kind: "hedge-settled", at: 1, requestId: "r", winner: "second", fault: "hung" },
    { kind: "request-moved", at: 1, requestId: "r", endpoint: "b" },
  ];
  const line = new Line();
  for (const input of inputs) {
    writeInput(line.writer, input);
    const { message } = line.writer;
    line.reader.room(message.length).set(message);
    const read = readInput(line.reader.byte(), line.reader, (at) => at + 1);
    assert.deepEqual(read, { ...input, at: 2 });
  }
  const asks: Input = { kind: "request-continued", at: 1, requestId: "r", fault: "cut", outputTokens: 3, answerHashes };
  assert.deepEqual(
    line.pass(
      (to) => writeAny(to, asks),
      (from) => readAny(from, (at) => at),
    ),
    asks,
  );
});

test("a request's summary is read back as it was written, every field of it", () => {
  const summary = {
    requestId: "r",
    method: "POST",
    route: "/v1/chat/completions",
    model: "m",
    tenant: "acme",
    endpoint: "a",
    prefillEndpoint: "p",
    profile: "gnomon",
    reason: "tie",
    status: 200,
    outcome: "ok",
    stream: true,
    attempts: 2,
    ttftMicros: 1_000,
    tpotMicros: undefined,
    queuedMicros: 3,
    e2eMicros: 5_000,
    promptTokens: 7,
    cachedTokens: undefined,
    outputTokens: 9,
    hitTokens: 16,
  } as const;
  assert.deepEqual(
    new Line().pass((to) => writeSummary(to, summary), readSummary),
    summary,
  );
});
