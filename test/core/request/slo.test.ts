import assert from "node:assert/strict";
import { test } from "node:test";
import { type PromisedEnd, sloResults } from "#core/request/slo.ts";

const BOTH = { ttftMicros: 100, tpotMicros: 10 };
/** 100 to the first token, then 10 a token. */
const END: PromisedEnd = {
  outcome: "ok",
  arrivedAt: 0,
  firstTokenAt: 100,
  endedAt: 200,
  outputTokens: 11,
  sequences: 1,
};

test("a target holds up to its very end, and both must", () => {
  assert.deepEqual(sloResults(BOTH, END), { ttft: "met", tpot: "met", all: "met" });
  assert.deepEqual(sloResults(BOTH, { ...END, endedAt: 201 }), { ttft: "met", tpot: "missed", all: "missed" });
  assert.deepEqual(sloResults(BOTH, { ...END, firstTokenAt: 101 }), { ttft: "missed", tpot: "met", all: "missed" });
  assert.deepEqual(sloResults({ tpotMicros: 10 }, { ...END, firstTokenAt: 101 }), { tpot: "met", all: "met" });
});

test("answers that came side by side are judged by the tokens of each", () => {
  const twice = { ...END, outputTokens: 22, sequences: 2 };
  assert.deepEqual(sloResults(BOTH, twice), { ttft: "met", tpot: "met", all: "met" });
  assert.equal(sloResults(BOTH, { ...twice, endedAt: 201 })?.tpot, "missed");
});

test("what failed or was refused got nothing; of what its client left nobody knows", () => {
  for (const outcome of ["failed", "timeout", "refused"] as const)
    assert.deepEqual(sloResults(BOTH, { ...END, outcome }), { ttft: "missed", tpot: "missed", all: "missed" });
  assert.equal(sloResults(BOTH, { ...END, outcome: "aborted" }), undefined);
});

test("what nobody saw is no success, and no failure of what was seen", () => {
  assert.deepEqual(sloResults(BOTH, { ...END, firstTokenAt: undefined }), {
    ttft: "unseen",
    tpot: "unseen",
    all: "unseen",
  });
  assert.deepEqual(sloResults(BOTH, { ...END, outputTokens: undefined }), {
    ttft: "met",
    tpot: "unseen",
    all: "unseen",
  });
  assert.equal(sloResults(BOTH, { ...END, firstTokenAt: 101, outputTokens: undefined })?.all, "missed");
  assert.deepEqual(sloResults({ tpotMicros: 1 }, { ...END, outputTokens: 1 }), { tpot: "met", all: "met" });
});
