import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { Routed } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import { decisionView } from "#live/status/status-view.ts";
import { DecisionRing } from "#live/status/shown-decisions.ts";
import { request } from "../../core/state.ts";
import { cameText, isOver } from "#live/status/what-came.ts";

const BREAKDOWN = { candidates: [], scorers: [], values: new Float64Array(0), totals: new Float64Array(0), clamped: 0 };
const forecast = { ttftMicros: 45_000, tpotMicros: 9_000, nextTtftMicros: 320_000 };

function routed(sequence: number, at: number, requestId: string, more: Partial<Routed> = {}): Routed {
  const said = { attempt: 1, profile: "p", policyVersion: 1, endpoint: "e", reason: "only", breakdown: BREAKDOWN };
  const found = { hitTokens: 672, prefixSource: "approximate", usedLedger: false, forecast } as const;
  return { kind: "routed", at, sequence, requestId, ...said, ...found, ...more };
}

const retried = (at: number, requestId: string): Input => ({ kind: "request-retried", at, requestId });
const firstToken = (at: number, requestId: string): Input => ({ kind: "first-token", at, requestId });
const finished = (at: number, requestId: string, outcome: "ok" | "aborted", outputTokens?: number): Input => {
  return { kind: "request-finished", at, requestId, outcome, promptTokens: 694, cachedTokens: 640, outputTokens };
};

test("what came stands beside what was expected, from the decision on, and grows as it becomes known", () => {
  const ring = new DecisionRing(4);
  ring.accepted(retried(1_000_000, "r"), routed(0, 1_000_000, "r"), 1);
  const [kept] = ring.last(1);
  assert.deepEqual([cameText(kept!), isOver(kept!)], ["", false]);
  ring.accepted(firstToken(1_052_000, "r"), undefined, 0);
  assert.deepEqual([cameText(kept!), isOver(kept!)], ["first token after 52 ms (expected 45 ms)", false]);
  ring.accepted(firstToken(1_090_000, "r"), undefined, 0);
  ring.accepted(finished(2_842_000, "r", "ok", 180), undefined, 0);
  assert.equal(isOver(kept!), true);
  assert.equal(
    cameText(kept!),
    "first token after 52 ms (expected 45 ms), then 180 tokens at 10 ms (expected 9.0 ms) each, whole after 1.84 s (expected 1.66 s); 640 tokens were cached (expected 672)",
  );
  const view = decisionView(kept!);
  assert.deepEqual(view.expected, { ttftMillis: 45, tpotMillis: 9, nextTtftMillis: 320 });
  const { text: _text, ...came } = view.came;
  const times = { ttftMillis: 52, tpotMillis: 10, e2eMillis: 1_842 };
  assert.deepEqual(came, { outcome: "ok", ...times, outputTokens: 180, cachedTokens: 640 });
});

test("answers side by side have the pace of one, and are expected to end as one does", () => {
  const ring = new DecisionRing(4);
  const arrived: Input = { kind: "request-arrived", at: 0, request: request({ id: "r", sequences: 2 }) };
  ring.accepted(arrived, routed(0, 0, "r"), 1);
  ring.accepted(firstToken(50_000, "r"), undefined, 0);
  ring.accepted(finished(150_000, "r", "ok", 22), undefined, 0);
  const [kept] = ring.last(1);
  assert.match(
    cameText(kept!),
    /, then 22 tokens of 2 answers side by side at 10 ms \(expected 9\.0 ms\) each, whole after 150 ms \(expected 135 ms\); /,
  );
  assert.equal(decisionView(kept!).came.tpotMillis, 10);
});

test("an attempt that failed has ended there, and what comes belongs to the decision after it", () => {
  const ring = new DecisionRing(4);
  ring.accepted(retried(0, "r"), routed(0, 0, "r"), 1);
  ring.accepted({ kind: "attempt-failed", at: 3_000, requestId: "r", fault: "connect" }, undefined, 0);
  ring.accepted(retried(4_000, "r"), routed(1, 4_000, "r", { attempt: 2 }), 1);
  ring.accepted(firstToken(9_000, "r"), undefined, 0);
  ring.accepted(finished(2_004_000, "r", "aborted"), undefined, 0);
  const [second, first] = ring.last(2);
  assert.equal(cameText(first!), "no token, failed there after 3.0 ms");
  assert.match(cameText(second!), /^first token after 5\.0 ms \(expected 45 ms\), left by its client after 2\.00 s; /);
});

test("of a decision without a forecast what came stands alone", () => {
  const ring = new DecisionRing(1);
  const { forecast: _none, ...plain } = routed(0, 0, "r");
  ring.accepted(retried(0, "r"), plain, 1);
  ring.accepted(firstToken(5_000, "r"), undefined, 0);
  ring.accepted(finished(25_000, "r", "ok", 3), undefined, 0);
  const text = cameText(ring.last(1)[0]!);
  assert.equal(
    text,
    "first token after 5.0 ms, then 3 tokens at 10 ms each, whole after 25 ms; 640 tokens were cached (expected 672)",
  );
});

test("of an answer that is no stream the whole time stands beside the one expected of so many tokens", () => {
  const ring = new DecisionRing(1);
  ring.accepted(retried(0, "r"), routed(0, 0, "r"), 1);
  ring.accepted(finished(162_000, "r", "ok", 11), undefined, 0);
  const text = cameText(ring.last(1)[0]!);
  assert.equal(text, "whole after 162 ms (expected 135 ms); 640 tokens were cached (expected 672)");
});

test("law: an answer belongs to the latest decision on its request, and to no other", () => {
  const step = fc.record({ request: fc.nat(3), what: fc.constantFrom("decide", "token", "end") });
  fc.assert(
    fc.property(fc.nat({ max: 5 }), fc.array(step, { maxLength: 60 }), (max, steps) => {
      const ring = new DecisionRing(max);
      const expected = new Map<number, { first?: number; end?: number }>();
      const open = new Map<string, number>();
      let sequence = 0;
      steps.forEach(({ request, what }, at) => {
        const id = `r${request}`;
        if (what === "decide") {
          ring.accepted(retried(at, id), routed(sequence, at, id), 1);
          expected.set(sequence, {});
          open.set(id, sequence++);
          return;
        }
        const one = expected.get(open.get(id) ?? -1);
        if (what === "token") {
          ring.accepted(firstToken(at, id), undefined, 0);
          if (one !== undefined) one.first ??= at;
        } else {
          ring.accepted(finished(at, id, "ok", 2), undefined, 0);
          if (one !== undefined) one.end = at;
          open.delete(id);
        }
      });
      for (const { decision, came } of ring.last(max)) {
        const { first, end } = expected.get(decision.sequence)!;
        const since = (at: number | undefined): number | undefined => (at === undefined ? undefined : at - decision.at);
        assert.deepEqual([came.firstTokenMicros, came.endMicros], [since(first), since(end)]);
      }
    }),
  );
});
