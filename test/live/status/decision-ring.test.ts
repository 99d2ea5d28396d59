import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import type { Decision } from "#core/input/decision.ts";
import { DecisionRing } from "#live/status/shown-decisions.ts";

function decision(sequence: number): Decision {
  return {
    kind: "rejected",
    at: sequence,
    sequence,
    requestId: `r${sequence}`,
    attempt: 1,
    profile: "",
    policyVersion: 1,
    reason: "no-endpoint",
    breakdown: { candidates: [], scorers: [], values: new Float64Array(), totals: new Float64Array(), clamped: 0 },
  };
}

test("law: the ring gives the last decisions, newest first, and never holds more than its bound", () => {
  fc.assert(
    fc.property(fc.nat(9), fc.nat(40), fc.nat(50), (max, added, asked) => {
      const ring = new DecisionRing(max);
      for (let i = 0; i < added; i++) {
        ring.accepted({ kind: "request-retried", at: i, requestId: `r${i}` }, decision(i), 1);
        ring.accepted({ kind: "first-token", at: i, requestId: `r${i}` }, undefined, 0);
      }
      const expected = Array.from({ length: added }, (_, i) => added - 1 - i).slice(0, Math.min(max, asked));
      assert.deepEqual(
        ring.last(asked).map((kept) => kept.decision.sequence),
        expected,
      );
      assert.equal(ring.size, Math.min(max, added));
    }),
  );
});
