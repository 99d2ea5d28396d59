import assert from "node:assert/strict";
import { test } from "node:test";
import { CATALOG } from "#core/profile/catalog.ts";
import type { Snapshot } from "#core/endpoint/snapshot.ts";
import { ABSTAIN } from "#core/scorer/scorer.ts";
import { request, snapshot } from "../state.ts";

const MILLI = 1_000;
/** Targets of 100 ms and 10 ms a token, which count alike. */
const TARGETS = { ttftTargetMillis: 100, tpotTargetMillis: 10, ttftWeight: 1, tpotWeight: 1 };

function observed(id: string, ttftMillis: number, tpotMillis: number, requestsInFlight = 1): Snapshot {
  return snapshot({ id, ttftMicros: ttftMillis * MILLI, tpotMicros: tpotMillis * MILLI, requestsInFlight });
}

function scoresOf(candidates: readonly Snapshot[], strategy = "least"): number[] {
  const scores = new Float64Array(candidates.length);
  const scorer = CATALOG.scorers["latency-headroom"].create("x", { ...TARGETS, strategy });
  scorer.score(request({ id: "q", promptTokens: 100 }), candidates, scores);
  return [...scores];
}

test("among those that meet both targets the tightest wins, or the loosest; all others have 0, unknown ones abstain", () => {
  const candidates = [
    observed("tight", 95, 9),
    observed("loose", 20, 2),
    observed("misses both", 300, 30),
    observed("misses TPOT", 20, 30),
    snapshot({ id: "unknown" }),
  ];
  assert.deepEqual(scoresOf(candidates), [1, 0, 0, 0, ABSTAIN]);
  assert.deepEqual(scoresOf(candidates, "most"), [0, 1, 0, 0, ABSTAIN]);
});

test("where none meets both, idle ones are preferred, then who misses TPOT only, TTFT only, and the smallest miss", () => {
  const [tpot, ttft, both] = [observed("a", 50, 11), observed("b", 101, 5), observed("c", 110, 11)];
  for (const strategy of ["least", "most"]) {
    assert.deepEqual(scoresOf([both, ttft, tpot, observed("idle", 900, 90, 0)], strategy), [0, 0, 0, 0.5]);
    assert.deepEqual(scoresOf([both, ttft, tpot], strategy), [0, 0, 0.5]);
    assert.deepEqual(scoresOf([both, ttft], strategy), [0, 0.5]);
    assert.deepEqual(scoresOf([both, observed("far", 400, 40)], strategy), [1, 0]);
  }
});

test("a target in which the candidates are alike has no weight, and where they are alike in both, all score the same", () => {
  assert.deepEqual(scoresOf([observed("a", 50, 9), observed("b", 50, 2), observed("c", 50, 5.5)]), [1, 0, 0.5]);
  assert.deepEqual(scoresOf([observed("a", 95, 5), observed("b", 20, 5)], "most"), [0, 1]);
  assert.deepEqual(scoresOf([observed("a", 50, 5), observed("b", 50, 5)]), [0.5, 0.5]);
});
