import assert from "node:assert/strict";
import { test } from "node:test";
import { CATALOG } from "#core/profile/catalog.ts";
import { EMPTY_BREAKDOWN } from "#core/input/breakdown.ts";
import type { Decision } from "#core/input/decision.ts";
import type { Snapshot } from "#core/endpoint/snapshot.ts";
import { request, snapshot } from "../state.ts";

const COLD = ["a", "b", "c"].map((id) => snapshot({ id }));

function scoring(parameters: Readonly<Record<string, number>> = {}) {
  const scorer = CATALOG.scorers["no-hit-lru"].create("lru", parameters);
  const score = (candidates: readonly Snapshot[]): number[] => {
    const scores = new Float64Array(candidates.length);
    scorer.score(request({ id: "r" }), candidates, scores);
    return [...scores];
  };
  /** The prompt that was scored last goes there. */
  const goes = (endpoint: Snapshot): void => {
    const noted = scorer.note?.(endpoint);
    const decision = {
      kind: "routed",
      endpoint: endpoint.id,
      breakdown: EMPTY_BREAKDOWN,
      noted,
    } as unknown as Decision;
    scorer.observe?.({ kind: "endpoint-left", at: 0, endpoint: endpoint.id }, decision, undefined);
  };
  return { score, goes };
}

test("a prompt that nobody holds goes where such a prompt went longest ago; unused endpoints first, in order of id", () => {
  const { score, goes } = scoring();
  assert.deepEqual(score(COLD), [1, 0.5, 0]);
  goes(COLD[0]!);
  assert.deepEqual(score(COLD), [0, 1, 0.5]);
  goes(COLD[1]!);
  assert.deepEqual(score(COLD), [0.5, 0, 1]);
});

test("of two endpoints the better one has 1 and the other one 0; a single one has 1", () => {
  const { score } = scoring();
  assert.deepEqual(score(COLD.slice(0, 2)), [1, 0]);
  assert.deepEqual(score(COLD.slice(0, 1)), [1]);
});

test("where somebody holds a block all are equal, and the prompt counts for nobody", () => {
  const { score, goes } = scoring();
  const warm = [COLD[0]!, snapshot({ id: "b", hitBlocks: 1, hitTokens: 16 }), COLD[2]!];
  assert.deepEqual(score(warm), [0.5, 0.5, 0.5]);
  goes(warm[0]!);
  assert.deepEqual(score(COLD), [1, 0.5, 0]);
});

test("endpoints beyond the ones remembered count as unused", () => {
  const { score, goes } = scoring({ lruSize: 1 });
  score(COLD);
  goes(COLD[0]!);
  score(COLD);
  goes(COLD[1]!);
  assert.deepEqual(score(COLD), [1, 0, 0.5]);
});
