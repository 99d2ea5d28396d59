import assert from "node:assert/strict";
import { test } from "node:test";
import type { Decision, Queued, Rejected, Routed } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import { ShownDecisions } from "#live/status/shown-decisions.ts";

const BREAKDOWN = { candidates: [], scorers: [], values: new Float64Array(0), totals: new Float64Array(0), clamped: 0 };
const INPUT: Input = { kind: "request-retried", at: 0, requestId: "r" };

function decision(
  sequence: number,
  at: number,
  more: Partial<Rejected> | Partial<Routed> | Partial<Queued> = {},
): Decision {
  const common = {
    at,
    sequence,
    requestId: `r${sequence}`,
    attempt: 1,
    profile: "p",
    policyVersion: 1,
    breakdown: BREAKDOWN,
  };
  return {
    ...common,
    kind: "routed",
    endpoint: "e",
    reason: "only",
    hitTokens: 0,
    usedLedger: false,
    ...more,
  } as Decision;
}

test("of a busy gateway's decisions four of each second are shown, of a quiet one's all", () => {
  const shown = new ShownDecisions();
  for (let i = 0; i < 1_000; i++) shown.accepted(INPUT, decision(i, i * 5_000), 1);
  assert.equal(shown.after(-1, 1_000).length, 20, "200 a second for 5 seconds");
  const quiet = new ShownDecisions();
  for (let i = 0; i < 10; i++) quiet.accepted(INPUT, decision(i, i * 300_000), 1);
  assert.deepEqual(
    quiet.after(5, 1_000).map((one) => one.decision.sequence),
    [9, 8, 7, 6],
  );
});

test("refusals and retries have room beside them, bounded as well", () => {
  const shown = new ShownDecisions();
  for (let i = 0; i < 1_000; i++) {
    shown.accepted(INPUT, decision(2 * i, i * 5_000), 1);
    shown.accepted(
      INPUT,
      decision(2 * i + 1, i * 5_000, i % 2 === 0 ? { kind: "rejected", reason: "saturated" } : { attempt: 2 }),
      1,
    );
  }
  const sequences = shown.after(-1, 1_000).map((one) => one.decision.sequence);
  assert.equal(sequences.filter((sequence) => sequence % 2 === 1).length, 20);
  assert.equal(sequences.length, 40);
  assert.equal(shown.get(sequences[3]!)?.decision.sequence, sequences[3]);
  assert.equal(shown.get(17), undefined);
});

test("a request that waits is unusual too", () => {
  const shown = new ShownDecisions();
  shown.accepted(INPUT, decision(0, 0), 1);
  shown.accepted(INPUT, decision(1, 0, { kind: "queued", reason: "saturated" }), 1);
  assert.equal(shown.after(-1, 10).length, 2);
});

test("it keeps a bounded number, whatever comes", () => {
  const shown = new ShownDecisions();
  for (let i = 0; i < 5_000; i++) shown.accepted(INPUT, decision(i, i * 1_000_000), 1);
  assert.equal(shown.after(-1, 1e6).length, 480);
});
