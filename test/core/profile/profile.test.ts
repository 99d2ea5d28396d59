import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ABSTAINED } from "#core/input/breakdown.ts";
import { imbalance } from "#core/filter/imbalance.ts";
import { maxScore } from "#core/picker/max-score.ts";
import { Profile } from "#core/profile/profile.ts";
import { randomFor } from "#core/base/random.ts";
import { queueDepth } from "#core/scorer/load-gauges.ts";
import { ABSTAIN, type Scorer } from "#core/scorer/scorer.ts";
import { request, snapshot } from "../state.ts";

/** A scorer that gives each candidate what the list says, whatever that is. */
function stubborn(name: string, given: readonly number[]): Scorer {
  return { name, score: (_request, candidates, scores) => candidates.forEach((_one, i) => (scores[i] = given[i]!)) };
}

function choose(rows: readonly (readonly number[])[], weights: readonly number[]) {
  const scorers = rows.map((given, s) => ({ scorer: stubborn(`s${s}`, given), weight: weights[s]! }));
  const profile = new Profile("p", { filters: [], scorers, picker: maxScore.create("max-score", {}) });
  const snapshots = rows[0]!.map((_one, i) => snapshot({ id: `e${i}` }));
  const ids = snapshots.map(({ id }) => id);
  return profile.choose(request({ id: "r" }), snapshots, ids, new Uint8Array(ids.length), randomFor(1, 1));
}

test("a score outside [0, 1] counts as the nearer bound, and each is counted", () => {
  const { index, breakdown } = choose(
    [
      [5, 0.5, -3],
      [0, 0.9, 0.4],
    ],
    [1, 1],
  );
  assert.deepEqual([...breakdown.values], [1, 0.5, 0, 0, 0.9, 0.4]);
  assert.deepEqual([...breakdown.totals], [0.5, 0.7, 0.2]);
  assert.equal(breakdown.clamped, 2);
  assert.equal(index, 1, "a scorer that exaggerates decides no more than one that does not");
});

test("property: whatever scorers write, values and totals are in [0, 1], and the count of clamped ones is exact", () => {
  const score = fc.oneof(
    fc.double({ min: -10, max: 10, noNaN: true }),
    fc.constantFrom(0, 1, -0.1, 1.1, Infinity, ABSTAIN),
  );
  const rows = fc.tuple(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 4 })).chain(([candidates, scorers]) =>
    fc.tuple(
      fc.array(fc.array(score, { minLength: candidates, maxLength: candidates }), {
        minLength: scorers,
        maxLength: scorers,
      }),
      fc.array(fc.double({ min: 0.1, max: 9, noNaN: true }), { minLength: scorers, maxLength: scorers }),
    ),
  );
  fc.assert(
    fc.property(rows, ([given, weights]) => {
      const { index, breakdown } = choose(given, weights);
      const flat = given.flat();
      const outside = flat.filter((one) => one !== ABSTAIN && (one < 0 || one > 1)).length;
      assert.equal(breakdown.clamped, outside);
      breakdown.values.forEach((value, i) => {
        if (flat[i] === ABSTAIN) assert.ok(Object.is(value, ABSTAINED));
        // A negative zero is no other score than zero.
        else assert.equal(value + 0, Math.min(1, Math.max(0, flat[i]!)));
      });
      const best = Math.max(...breakdown.totals);
      for (const total of breakdown.totals) assert.ok(total >= 0 && total <= 1 + 1e-12, String(total));
      assert.equal(breakdown.totals[index], best);
    }),
  );
});

test("property: what a choice sees does not depend on how many there were at the choices before it", () => {
  const plugins = {
    filters: [imbalance.create("imbalance", { factor: 1, slack: 1 })],
    scorers: [{ scorer: queueDepth.create("queue-depth", {}), weight: 1 }],
    picker: maxScore.create("max-score", {}),
  };
  const fleet = fc.array(fc.record({ effectiveLoad: fc.nat(9), ineligible: fc.constantFrom(0, 0, 0, 2) }), {
    maxLength: 6,
  });
  fc.assert(
    fc.property(fc.array(fleet, { minLength: 2, maxLength: 6 }), (fleets) => {
      const used = new Profile("p", plugins);
      for (const states of fleets) {
        const snapshots = states.map(({ effectiveLoad }, i) => snapshot({ id: `e${i}`, effectiveLoad }));
        const ids = snapshots.map(({ id }) => id);
        const ineligible = Uint8Array.from(states, (state) => state.ineligible);
        const asked = request({ id: "r" });
        const choiceOf = (profile: Profile) => {
          const { breakdown, ...rest } = profile.choose(asked, snapshots, ids, ineligible, randomFor(1, 1));
          return { ...rest, candidates: breakdown.candidates, totals: [...breakdown.totals] };
        };
        assert.deepEqual(choiceOf(used), choiceOf(new Profile("p", plugins)));
      }
    }),
  );
});
