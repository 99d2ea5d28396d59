import assert from "node:assert/strict";
import { test } from "node:test";
import type { Plugin } from "#core/plugin/plugin.ts";
import { randomFor } from "#core/random.ts";
import { ABSTAIN, type Scorer } from "#core/scorer/scorer.ts";
import { drawState } from "../state.ts";

const STATES = 300;

/** What every scorer owes: INV-1, INV-2, INV-3, inputs left alone, and an answer for a single candidate. */
export function scorerContract(name: string, plugin: Plugin<Scorer>): void {
  const states = Array.from({ length: STATES }, (_, i) => drawState(randomFor(41, i), i % 7 === 0 ? 100 : 6));

  test(`${name}: INV-1 and INV-2, every candidate gets a score in [0, 1], or the scorer abstains`, () => {
    const scorer = plugin.create(name, {});
    states.forEach(({ request, candidates }, i) => {
      const scores = new Float64Array(candidates.length + 2).fill(-7);
      scorer.score(request, candidates, scores);
      for (let c = 0; c < candidates.length; c++) {
        assert.ok(
          scores[c] === ABSTAIN || (scores[c]! >= 0 && scores[c]! <= 1),
          `state ${i}, candidate ${c}: ${scores[c]}`,
        );
      }
      assert.deepEqual(Array.from(scores.slice(candidates.length)), [-7, -7], "writes nothing beyond the candidates");
    });
  });

  test(`${name}: INV-3, the same state gives the same scores, on the same and on another instance`, () => {
    const scorer = plugin.create(name, {});
    for (const { request, candidates } of states) {
      const [first, again, other] = [0, 1, 2].map(() => new Float64Array(candidates.length));
      scorer.score(request, candidates, first!);
      scorer.score(request, candidates, again!);
      plugin.create(name, {}).score(request, candidates, other!);
      assert.deepEqual(again, first);
      assert.deepEqual(other, first);
    }
  });

  test(`${name}: leaves the request and the candidates as they were`, () => {
    const scorer = plugin.create(name, {});
    for (const { request, candidates } of states) {
      const before = JSON.stringify([request, candidates]);
      scorer.score(Object.freeze(request), Object.freeze(candidates), new Float64Array(candidates.length));
      assert.equal(JSON.stringify([request, candidates]), before);
    }
  });

  test(`${name}: no candidates, no scores`, () => {
    const scores = new Float64Array([0.5]);
    plugin.create(name, {}).score(states[0]!.request, [], scores);
    assert.equal(scores[0], 0.5);
  });
}
