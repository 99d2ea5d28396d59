import assert from "node:assert/strict";
import { test } from "node:test";
import type { Plugin } from "#core/plugin/plugin.ts";
import type { ParameterValue } from "#core/plugin/spec.ts";
import { randomFor } from "#core/base/random.ts";
import { ABSTAIN, type Scorer } from "#core/scorer/scorer.ts";
import { guardedRequest, guardedSnapshot } from "../declared-signals.ts";
import { observeTraffic } from "../observed-traffic.ts";
import { parameterChoices } from "../parameter-choices.ts";
import { drawState } from "../state.ts";

/** Small fleets and a few large ones, drawn once: no plugin may change them. */
const STATES = Array.from({ length: 40 }, (_, i) => drawState(randomFor(41, i), i % 20 === 0 ? 100 : 6));
const TEXTS = STATES.map(({ request, candidates }) => JSON.stringify([request, candidates]));

/** What every scorer owes, for each choice of its parameters, new and after traffic that it observed. */
export function scorerContract(name: string, plugin: Plugin<Scorer>): void {
  for (const given of parameterChoices(plugin.parameters)) {
    const title = `${name} ${JSON.stringify(given)}`;
    const experienced = (): Scorer => {
      const scorer = plugin.create(name, given);
      observeTraffic(scorer);
      return scorer;
    };
    laws(`${title}, new`, plugin, given, () => plugin.create(name, given));
    laws(`${title}, after traffic`, plugin, given, experienced);
  }
}

function laws(
  title: string,
  plugin: Plugin<Scorer>,
  given: Record<string, ParameterValue>,
  create: () => Scorer,
): void {
  test(`${title}: invariants 1 and 2, every candidate gets a score in [0, 1], or the scorer abstains`, () => {
    const scorer = create();
    STATES.forEach(({ request, candidates }, i) => {
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

  test(`${title}: invariant 3, the same state gives the same scores, on the same and on another instance`, () => {
    const scorer = create();
    const another = create();
    for (const { request, candidates } of STATES) {
      const [first, again, other] = [0, 1, 2].map(() => new Float64Array(candidates.length));
      scorer.score(request, candidates, first!);
      scorer.score(request, candidates, again!);
      another.score(request, candidates, other!);
      assert.deepEqual(again, first);
      assert.deepEqual(other, first);
    }
  });

  test(`${title}: leaves the request and the candidates as they were, and no candidates get no scores`, () => {
    const scorer = create();
    for (const [i, { request, candidates }] of STATES.entries()) {
      scorer.score(Object.freeze(request), Object.freeze(candidates), new Float64Array(candidates.length));
      assert.equal(JSON.stringify([request, candidates]), TEXTS[i]);
    }
    const scores = new Float64Array([0.5]);
    scorer.score(STATES[0]!.request, [], scores);
    assert.equal(scores[0], 0.5);
  });

  test(`${title}: reads only the signals that it declares`, () => {
    const scorer = create();
    const signals = plugin.readsWith(given);
    for (const { request, candidates } of STATES) {
      const guarded = candidates.map((one) => guardedSnapshot(one, signals));
      scorer.score(guardedRequest(request, signals), guarded, new Float64Array(candidates.length));
    }
  });
}
