import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { imbalance } from "#core/filter/imbalance.ts";
import { request, snapshot } from "../state.ts";

/** Which of endpoints with such loads stay. */
function kept(loads: readonly number[], factor = 1.25, slack = 4): number[] {
  const candidates = loads.map((effectiveLoad, i) => snapshot({ id: String(i), effectiveLoad }));
  const keep = new Uint8Array(loads.length).fill(1);
  imbalance.create("imbalance", { factor, slack }).filter(request({ id: "r" }), candidates, keep, randomFor(1, 1));
  return loads.filter((_, i) => keep[i] === 1);
}

test("who has more than a multiple of the mean, and some more, goes; who has just as much stays", () => {
  // The mean is 8, so that 14 may stay.
  assert.deepEqual(kept([2, 14, 8]), [2, 14, 8]);
  assert.deepEqual(kept([2, 15, 7]), [2, 7]);
  assert.deepEqual(kept([2, 14, 8], 1.25, 3), [2, 8]);
  assert.deepEqual(kept([2, 14, 8], 1, 4), [2, 8]);
  assert.deepEqual(kept([3, 0, 1]), [3, 0, 1], "a quiet fleet is left alone");
  assert.deepEqual(kept([100]), [100]);
});

test("the least loaded always stays, whatever the loads", () => {
  const random = randomFor(7, 7);
  for (let run = 0; run < 500; run++) {
    const loads = Array.from({ length: 1 + random.below(9) }, () => random.below(200));
    assert.ok(kept(loads, 1, 0).includes(Math.min(...loads)), loads.join(" "));
  }
});
