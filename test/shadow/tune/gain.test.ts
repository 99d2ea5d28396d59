import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { gainOf, signChance } from "#shadow/tune/gain.ts";
import { timeUnits } from "#shadow/tune/time-units.ts";
import { MEAN_E2E } from "./tune-case.ts";

/** Losses of 40 conversations of ten requests, whose level is their own; `gain` is taken from each. */
function drawn(seed: number, gain: number) {
  const random = randomFor(seed, 1);
  const before = new Float64Array(400);
  const after = new Float64Array(400);
  for (let unit = 0; unit < 40; unit++) {
    const swing = random.next() - 0.5;
    for (let i = 0; i < 10; i++) {
      before[10 * unit + i] = 100 + 40 * random.next();
      after[10 * unit + i] = before[10 * unit + i]! * (1 - gain) + 30 * swing;
    }
  }
  return { before, after };
}

const UNITS = { ofRow: Int32Array.from({ length: 400 }, (_, row) => Math.floor(row / 10)), count: 40 };

test("an interval holds the gain in nearly all draws, where conversations swing as one", () => {
  const runs = 60;
  for (const gain of [0, 0.1]) {
    let inside = 0;
    for (let seed = 1; seed <= runs; seed++) {
      const one = gainOf(MEAN_E2E, [drawn(seed, gain)], UNITS, seed)!;
      if (one.low <= gain && gain <= one.high) inside++;
    }
    assert.ok(inside >= 0.9 * runs, `${inside} of ${runs} intervals hold ${gain}`);
  }
});

test("engines that disagree widen it beyond what conversations leave to chance", () => {
  const [one, other] = [drawn(1, 0.1), drawn(1, -0.05)];
  const alone = gainOf(MEAN_E2E, [one], UNITS, 1)!;
  const both = gainOf(MEAN_E2E, [one, other], UNITS, 1)!;
  assert.ok(both.high - both.low > 1.5 * (alone.high - alone.low));
});

test("the best of many that gain nothing is as good by chance, while one alone would look sure", () => {
  let [alone, corrected] = [0, 0];
  for (let seed = 1; seed <= 30; seed++) {
    const random = randomFor(seed, 2);
    const all = Array.from({ length: 20 }, () => Float64Array.from({ length: 30 }, () => random.next() - 0.5));
    const sums = all.map((one) => one.reduce((sum, value) => sum + value, 0));
    const best = sums.indexOf(Math.max(...sums));
    if (signChance([all[best]!], seed)[0]! <= 0.05) alone++;
    if (signChance(all, seed)[best]! <= 0.05) corrected++;
  }
  assert.ok(alone > 10, `${alone} of 30 without regard to the search`);
  assert.ok(corrected <= 5, `${corrected} of 30 with it`);
});

test("a percentile is resampled as well", () => {
  const tail = { kind: "time", metric: "e2eMicros", figure: "p99" } as const;
  const one = gainOf(tail, [drawn(3, 0.2)], UNITS, 1)!;
  assert.ok(one.low < one.value && one.value < one.high && one.value > 0.05);
  assert.ok(one.chance < 0.05);
});

test("stretches of time hold neighbours, and leave out what does not count", () => {
  const arrivals = Float64Array.from({ length: 100 }, (_, row) => 1000 - row);
  const counts = Uint8Array.from({ length: 100 }, (_, row) => (row < 50 ? 1 : 0));
  const { ofRow, count } = timeUnits(arrivals, counts);
  assert.equal(count, 8);
  assert.equal(ofRow[49], 0, "the first to arrive");
  assert.equal(ofRow[0], 7);
  assert.ok(ofRow.subarray(50).every((unit) => unit === -1));
});
