import assert from "node:assert/strict";
import { test } from "node:test";
import type { Decision } from "#core/input/decision.ts";
import type { Snapshot } from "#core/endpoint/snapshot.ts";
import type { ParameterValue } from "#core/plugin/spec.ts";
import { maxScore } from "#core/picker/max-score.ts";
import { randomFor } from "#core/base/random.ts";
import { request, snapshot } from "../state.ts";

const EQUAL = [snapshot({ id: "a" }), snapshot({ id: "b" }), snapshot({ id: "c" })];

function picking(parameters: Readonly<Record<string, ParameterValue>>) {
  const picker = maxScore.create("max-score", parameters);
  const pick = (totals: readonly number[], candidates: readonly Snapshot[] = EQUAL, promptTokens = 100, draw = 1) => {
    const asked = request({ id: "r", promptTokens });
    return candidates[picker.pick(asked, candidates, Float64Array.from(totals), randomFor(1, draw))]!.id;
  };
  /** The pick takes effect as a decision. */
  const decided = (endpoint: string): void => {
    const noted = picker.note?.(EQUAL[0]!);
    const decision = { kind: "routed", endpoint, ...(noted && { noted }) } as Decision;
    picker.observe?.({ kind: "endpoint-left", at: 0, endpoint }, decision);
  };
  return { pick, decided };
}

test("the highest total wins, and a total within epsilon of it ties with it", () => {
  const { pick } = picking({ epsilon: 0.1 });
  assert.equal(pick([0.2, 0.9, 0.7]), "b");
  assert.equal(pick([0.2, 0.85, 0.9]), "b", "0.05 behind is a tie");
  assert.equal(pick([0.2, 0.75, 0.9]), "c", "0.15 behind is none");
});

test("lowest-id: the first of those that tie", () => {
  const { pick } = picking({ tieBreak: "lowest-id" });
  assert.equal(pick([1, 1, 1]), "a");
  assert.equal(pick([0, 1, 1]), "b");
});

test("random: each of those that tie, and no other one", () => {
  const { pick } = picking({ tieBreak: "random" });
  const picked = Array.from({ length: 60 }, (_, draw) => pick([1, 0, 1], EQUAL, 100, draw));
  assert.deepEqual([...new Set(picked)].sort(), ["a", "c"]);
});

test("rotate: in turn, where a tie was decided; a clear winner takes no turn", () => {
  const { pick, decided } = picking({ tieBreak: "rotate" });
  const picked: string[] = [];
  for (const totals of [
    [1, 1, 1],
    [1, 1, 1],
    [0, 0, 1],
    [1, 1, 1],
  ]) {
    const id = pick(totals);
    decided(id);
    picked.push(id);
  }
  assert.deepEqual(picked, ["a", "b", "c", "c"]);
});

test("coldest-work: the fewest new tokens, then the fewest requests in flight, then in turn", () => {
  const { pick, decided } = picking({ tieBreak: "coldest-work" });
  const candidates = [
    snapshot({ id: "a", hitTokens: 0 }),
    snapshot({ id: "b", hitTokens: 64, requestsInFlight: 3 }),
    snapshot({ id: "c", hitTokens: 64, requestsInFlight: 2 }),
    snapshot({ id: "d", hitTokens: 64, requestsInFlight: 2 }),
  ];
  assert.equal(pick([1, 1, 1, 1], candidates), "c");
  decided("c");
  assert.equal(pick([1, 1, 1, 1], candidates), "d");
  const whole = [snapshot({ id: "a", hitTokens: 64 }), snapshot({ id: "b", hitTokens: 80 })];
  assert.equal(picking({ tieBreak: "coldest-work" }).pick([1, 1], whole, 64), "a", "nothing is new at either of them");
});

test("least-served: the fewest decisions so far, then the lowest id", () => {
  const { pick, decided } = picking({ tieBreak: "least-served" });
  const picked = Array.from({ length: 4 }, () => {
    const id = pick([1, 1, 1]);
    decided(id);
    return id;
  });
  assert.deepEqual(picked, ["a", "b", "c", "a"]);
});
