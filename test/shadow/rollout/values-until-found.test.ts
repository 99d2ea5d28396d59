import assert from "node:assert/strict";
import { test } from "node:test";
import { type Random, randomFor } from "#core/base/random.ts";
import { addBlock, noBlocks, plainEstimate } from "#core/rollout/judge/block-differences.ts";
import { priorFor, reach, valuesToFind } from "#core/rollout/judge/confidence-sequence.ts";
import {
  type Findable,
  foundBetween,
  shareFoundBy,
  shareFoundIn,
  valuesForShare,
  valuesUntilFound,
} from "#shadow/rollout/values-until-found.ts";

const LEVEL = 0.02;
const EFFECT: Findable = {
  effect: 0.7,
  effectError: 0,
  trafficError: 0,
  deviation: 1,
  level: LEVEL,
  degreesOf: (count) => count - 1,
  valuesMin: 3,
  valuesMax: 10_000,
};

function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}

/** Share of rollouts whose interval left out 0 at any look at up to `count` blocks, by the judge's own sums. */
function foundShare(count: number, planned: number, effectOf: (random: Random) => number): number {
  const runs = 1_500;
  let found = 0;
  for (let seed = 1; seed <= runs; seed++) {
    const random = randomFor(seed, 3);
    const effect = effectOf(random);
    const sums = noBlocks();
    for (let i = 0; i < count; i++) {
      addBlock(sums, effect + normal(random), 0);
      const estimate = plainEstimate(sums);
      if (estimate.mean <= reach(estimate, LEVEL, priorFor(planned, LEVEL))) continue;
      found++;
      break;
    }
  }
  return found / runs;
}

test("the promised share of rollouts is the one that finds the effect when every block is looked at", () => {
  const half = valuesToFind(EFFECT.effect, 1, { level: LEVEL, standardErrors: 0, valuesMax: 10_000 })!;
  const counts = valuesUntilFound(EFFECT);
  for (const power of [0.3, 0.5, 0.8]) {
    const count = counts[Math.ceil(power * counts.length) - 1]!;
    const share = foundShare(count, half, () => EFFECT.effect);
    // Chance of both: 400 walks and 1,500 rollouts.
    assert.ok(Math.abs(share - power) < 0.09, `${share} of rollouts by ${count} blocks, promised ${power}`);
  }
  // A single look at the end promises less.
  assert.ok(shareFoundBy(counts, half) > 0.55, String(shareFoundBy(counts, half)));
});

test("an effect that is not quite known is promised with what it may be", () => {
  const unsure = { ...EFFECT, effectError: 0.5 };
  for (const count of [20, 80]) {
    const promised = shareFoundBy(valuesUntilFound(unsure, count), count);
    const share = foundShare(count, count, (random) => 0.7 + 0.5 * normal(random));
    assert.ok(Math.abs(share - promised) < 0.09, `${share} of rollouts, promised ${promised}`);
  }
  // Parts of the trace differ by more than the effect: no time finds it as surely.
  const counts = valuesUntilFound({ ...EFFECT, trafficError: 2 });
  assert.equal(counts[Math.ceil(0.8 * counts.length) - 1], Infinity);
});

test("on nine of ten kinds of traffic the share of rollouts that find the effect is within the range", () => {
  const unsure = { ...EFFECT, effectError: 0.3, trafficError: 0.1 };
  const count = 40;
  const { low, high } = foundBetween(unsure, count);
  const promised = shareFoundBy(valuesUntilFound(unsure, count), count);
  assert.ok(low < promised && promised < high, `${low} ${promised} ${high}`);
  assert.ok(high - low > 0.3, "an effect that may be half as large is found half as often");
  let within = 0;
  for (let traffic = 0; traffic < 40; traffic++) {
    const random = randomFor(traffic, 7);
    const student =
      normal(random) / Math.sqrt(Array.from({ length: 8 }, () => normal(random) ** 2 / 8).reduce((a, b) => a + b));
    const effect = 0.7 + 0.3 * normal(random) + 0.1 * student;
    const share = shareFoundBy(valuesUntilFound({ ...EFFECT, effect: Math.max(0, effect) }, count), count);
    if (low - 0.02 <= share && share <= high + 0.02) within++;
  }
  assert.ok(within >= 32, `${within} of 40`);
  // What is known to be there is as likely on all traffic.
  const known = foundBetween(EFFECT, count);
  assert.equal(known.low, known.high);
  assert.deepEqual(foundBetween({ ...EFFECT, effect: NaN }, count), { low: 0, high: 0 });
});

test("nothing is promised of an effect that is none, or that is beyond the time there is", () => {
  assert.equal(shareFoundBy(valuesUntilFound({ ...EFFECT, effect: 0 }), 1e9), 0);
  assert.equal(shareFoundBy(valuesUntilFound({ ...EFFECT, effect: 0.001 }), 1e9), 0);
  assert.equal(shareFoundBy(valuesUntilFound({ ...EFFECT, effect: NaN }), 1e9), 0);
  assert.deepEqual(valuesUntilFound(EFFECT), valuesUntilFound(EFFECT));
});

/** What differs from EFFECT, the count that is asked for and planned, and after how many values walks find it. */
const WALKED: readonly (readonly [
  Partial<Findable>,
  count: number,
  found: readonly number[],
  planned: readonly number[],
])[] = [
  [{}, 40, [400, 9, 14, 25, 45, 10939], [400, 9, 15, 26, 45, 11164]],
  [
    { effect: -0.3, effectError: 0.2, trafficError: 0.1 },
    90,
    [336, 16, 31, 82, 487, 65003],
    [336, 14, 28, 79, 506, 64984],
  ],
  [{ effect: 2, deviationDegrees: 6, valuesMax: 200 }, 8, [400, 6, 6, 8, 13, 3624], [400, 6, 6, 8, 13, 3624]],
  [
    { effect: 0.02, valuesMin: 200, valuesMax: 1000000, level: 0.001 },
    30000,
    [400, 7231, 18514, 40548, 73016, 17730191],
    [400, 6914, 18412, 41934, 72609, 17750593],
  ],
];

test("walks that end where no more is asked of them come to what whole ones do, and those to what they always did", () => {
  for (const [differing, count, found, planned] of WALKED) {
    const findable = { ...EFFECT, ...differing };
    const [counts, inCount] = [valuesUntilFound(findable), valuesUntilFound(findable, count)];
    assert.deepEqual([figuresOf(counts), figuresOf(inCount)], [found, planned]);
    for (const share of [0.01, 0.5, 0.8, 1])
      assert.equal(valuesForShare(findable, share), counts[Math.ceil(share * counts.length) - 1]);
    assert.equal(shareFoundIn(findable, count), shareFoundBy(inCount, count));
  }
});

/** How many of the walks find it, and after how many values the first, a tenth, half and nine of ten of those do, and all together. */
function figuresOf(counts: readonly number[]): number[] {
  const found = counts.filter((count) => count < Infinity);
  const at = [0, 0.1, 0.5, 0.9].map((q) => found[Math.floor(q * found.length)] ?? Infinity);
  return [found.length, ...at, found.reduce((sum, count) => sum + count, 0)];
}
