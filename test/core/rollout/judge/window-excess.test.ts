import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { WindowExcess } from "#core/rollout/judge/window-excess.ts";

/** Of four limits, together at 5 %. */
const LEVEL = 0.0125;

/** Windows after which it is surely above its limit; Infinity where it never is. */
function foundAfter(ratios: Iterable<number>): number {
  const excess = new WindowExcess();
  let count = 0;
  for (const ratio of ratios) {
    excess.add(ratio);
    count++;
    if (excess.atLeast(LEVEL) > 1) return count;
  }
  return Infinity;
}

test("a pool whose queue grows from window to window is found in the sixth window, one that is steadily worse in the fifth", () => {
  assert.equal(foundAfter([1.5, 5, 11, 19, 30, 44]), 6);
  assert.equal(foundAfter([1.9, 2.3, 1.7, 2.2, 2, 1.9]), 5);
});

test("a pool that is at its limit is taken for above it at any look in at most so many runs as the level has, and one within it never", () => {
  const runs = 4000;
  const normal = (random: { next(): number }) =>
    Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
  for (const deviation of [0.15, 0.4, 1]) {
    let alarms = 0;
    for (let run = 0; run < runs; run++) {
      const random = randomFor(7, run);
      const ratios = Array.from({ length: 60 }, () => Math.exp(deviation * normal(random)));
      if (foundAfter(ratios) < Infinity) alarms++;
    }
    const error = Math.sqrt((LEVEL * (1 - LEVEL)) / runs);
    assert.ok(alarms / runs < LEVEL + 3 * error, `${alarms} of ${runs} at a deviation of ${deviation}`);
  }
  assert.equal(foundAfter(Array.from({ length: 200 }, (_, i) => (i % 3 === 0 ? 1.2 : 0.6))), Infinity);
});
