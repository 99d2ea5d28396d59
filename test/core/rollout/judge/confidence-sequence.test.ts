import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Random, randomFor } from "#core/base/random.ts";
import { addBlock, adjustedEstimate, noBlocks, plainEstimate } from "#core/rollout/judge/block-differences.ts";
import { ClusterMeans } from "#core/rollout/judge/cluster-means.ts";
import { effectFound, evidence, priorFor, reach, valuesToFind } from "#core/rollout/judge/confidence-sequence.ts";
import { TimeHistogram } from "#core/rollout/judge/time-histogram.ts";

function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}

/** What blocks differ by where arms are alike: symmetric, as the order of the arms is drawn; some with heavy tails. */
const NULLS: Readonly<Record<string, (random: Random) => number>> = {
  normal,
  "two exponentials": (random) => Math.log(1 - random.next()) - Math.log(1 - random.next()),
  "a sign": (random) => (random.next() < 0.5 ? -1 : 1),
  "now and then a burst": (random) => normal(random) * (random.next() < 0.05 ? 20 : 1),
};

const SEQUENCES = 1500;
const LOOKS = 120;

for (const [name, draw] of Object.entries(NULLS)) {
  test(`of all looks at blocks without a difference, at most the promised share ever finds one: ${name}`, () => {
    for (const level of [0.05, 0.2]) {
      let wrong = 0;
      for (let seed = 1; seed <= SEQUENCES; seed++) {
        const random = randomFor(seed, 1);
        const sums = noBlocks();
        for (let look = 0; look < LOOKS; look++) {
          const covariate = normal(random);
          addBlock(sums, draw(random) + covariate, covariate + 0.3 * normal(random));
          const estimate = adjustedEstimate(sums);
          if (Math.abs(estimate.mean) <= reach(estimate, level, priorFor(30, level))) continue;
          wrong++;
          break;
        }
      }
      const error = Math.sqrt((level * (1 - level)) / SEQUENCES);
      assert.ok(wrong / SEQUENCES <= level + 3 * error, `${wrong} of ${SEQUENCES} at ${level}`);
    }
  });
}

test("an interval leaves out 0 exactly where the evidence reaches 1 / level", () => {
  const estimate = fc.record({
    count: fc.integer({ min: 2, max: 5000 }),
    mean: fc.double({ min: -10, max: 10, noNaN: true }),
    deviation: fc.double({ min: 0.01, max: 100, noNaN: true }),
  });
  fc.assert(
    fc.property(estimate, fc.constantFrom(0.01, 0.05, 0.3), fc.constantFrom(10, 1000), (given, level, planned) => {
      const one = { ...given, degrees: given.count - 1 };
      const prior = priorFor(planned, level);
      const beyond = Math.abs(one.mean) - reach(one, level, prior);
      const times = evidence(one, prior) * level;
      fc.pre(Math.abs(times - 1) > 1e-9);
      assert.equal(beyond > 0, times > 1);
    }),
  );
});

test("the interval is as wide as the known normal mixture where values are many", () => {
  const [count, level] = [100_000, 0.05];
  const prior = priorFor(count, level);
  const spread = 1 + count * prior;
  const known = Math.sqrt(((spread / (count * prior)) * 2 * Math.log(Math.sqrt(spread) / level)) / count);
  const own = reach({ count, mean: 0, deviation: 1, degrees: count - 1 }, level, prior);
  assert.ok(Math.abs(own / known - 1) < 0.001, `${own} ${known}`);
});

test("a planned number of values finds the effect with at least the planned power", () => {
  const plan = { level: 0.05, standardErrors: 0.84, valuesMax: 10_000 };
  const count = valuesToFind(0.7, 1, plan)!;
  assert.ok(effectFound(count, 1, plan) <= 0.7);
  assert.equal(valuesToFind(0.001, 1, { ...plan, valuesMax: 1000 }), undefined);
  // An effect that is not quite known is planned for as if it were smaller; one that may be nothing is not found surely.
  assert.ok(valuesToFind(0.7, 1, { ...plan, effectError: 0.3 })! > 1.2 * count);
  assert.equal(valuesToFind(0.7, 1, { ...plan, effectError: 0.9 }), undefined);
  const prior = priorFor(count, 0.05);
  const runs = 1000;
  let found = 0;
  for (let seed = 1; seed <= runs; seed++) {
    const random = randomFor(seed, 2);
    const sums = noBlocks();
    for (let i = 0; i < count; i++) addBlock(sums, 0.7 + normal(random), 0);
    const estimate = plainEstimate(sums);
    if (estimate.mean > reach(estimate, 0.05, prior)) found++;
  }
  assert.ok(found / runs > 0.8 - 3 * Math.sqrt(0.16 / runs), `${found}`);
  assert.ok(found / runs < 0.9, `${found} of ${runs}: planned far too long`);
});

test("few blocks with a covariate find the effect with the planned power, and no oftener where there is none", () => {
  const level = 0.05;
  // The slope costs a degree of freedom, and the least number of blocks is what an operator gets for a large effect.
  const finding = {
    level,
    standardErrors: 0.84,
    degreesOf: (count: number) => count - 2,
    valuesMin: 10,
    valuesMax: 500,
  };
  for (const effect of [1.1, 1.9]) {
    const count = valuesToFind(effect, 1, finding)!;
    assert.ok(count >= 10 && count < 40, `${count}`);
    const prior = priorFor(count, level);
    const runs = 1000;
    const found = [0, 0];
    for (let seed = 1; seed <= runs; seed++) {
      [0, effect].forEach((mean, place) => {
        const random = randomFor(seed, 4 + place);
        const sums = noBlocks();
        let seen = false;
        for (let i = 0; i < count; i++) {
          const traffic = 5 * normal(random);
          addBlock(sums, mean + 0.8 * traffic + normal(random), traffic, 1 + random.next());
          const estimate = adjustedEstimate(sums);
          seen ||= Math.abs(estimate.mean) > reach(estimate, level, prior);
        }
        if (seen) found[place]!++;
      });
    }
    assert.ok(found[1]! / runs > 0.8 - 3 * Math.sqrt(0.16 / runs), `${found[1]} of ${runs} at ${count}`);
    assert.ok(found[0]! / runs < level + 3 * Math.sqrt((level * (1 - level)) / runs), `${found[0]} of ${runs}`);
  }
});

test("a covariate takes away what it explains and leaves the effect", () => {
  const random = randomFor(3, 3);
  const sums = noBlocks();
  for (let i = 0; i < 2000; i++) {
    const traffic = 10 * normal(random);
    addBlock(sums, 2 + traffic + normal(random), 0.8 * traffic);
  }
  const [plain, adjusted] = [plainEstimate(sums), adjustedEstimate(sums)];
  assert.ok(adjusted.deviation < 0.12 * plain.deviation, `${adjusted.deviation} ${plain.deviation}`);
  assert.ok(Math.abs(adjusted.mean - 2) < 0.1, `${adjusted.mean}`);
});

test("a covariate that happens to lean to one side does not take the effect with it", () => {
  const random = randomFor(4, 4);
  const sums = noBlocks();
  for (let i = 0; i < 12; i++) {
    const traffic = (i === 0 ? 40 : 0) + 5 * normal(random);
    addBlock(sums, 50 + traffic + normal(random), traffic);
  }
  const { mean, deviation, count } = adjustedEstimate(sums);
  assert.ok(Math.abs(mean - 50) < 1.5, `${mean}`);
  assert.ok(deviation < 2, `${deviation}`);
  assert.ok(count < 12 && count > 6, `${count}`);
});

test("a block or a cluster counts as much as it has requests: the mean is that over requests", () => {
  const sums = noBlocks();
  const clusters = new ClusterMeans(2);
  const random = randomFor(5, 5);
  let [value, weight] = [0, 0];
  for (let i = 0; i < 300; i++) {
    const requests = 1 + random.below(9);
    // The more requests, the larger the difference.
    const difference = 10 * requests + normal(random);
    addBlock(sums, difference, 0, requests);
    value += requests * difference;
    weight += requests;
    for (let r = 0; r < requests; r++) {
      clusters.add(1, `one ${i}`, 100 + difference, 0);
      clusters.add(0, `other ${i}`, 100, 0);
    }
  }
  for (const { mean, deviation } of [plainEstimate(sums), clusters.estimate(1, false)]) {
    assert.ok(Math.abs(mean - value / weight) < 1e-6, `${mean} ${value / weight}`);
    assert.ok(deviation > 0);
  }
});

test("what a covariate explains is taken off clusters of many requests as off single ones", () => {
  const clusters = new ClusterMeans(2);
  const random = randomFor(8, 8);
  for (let i = 0; i < 200; i++) {
    for (const arm of [0, 1]) {
      for (let r = 1 + random.below(5); r > 0; r--) {
        const covariate = 100 * random.next();
        clusters.add(arm, i % 2 === 0 ? `session ${i}` : "", 2 * covariate + 7 * arm, covariate);
      }
    }
  }
  const adjusted = clusters.estimate(1, true);
  assert.ok(Math.abs(adjusted.mean - 7) < 1e-6, `${adjusted.mean}`);
  assert.ok(adjusted.deviation < 1e-3, `${adjusted.deviation}`);
  assert.ok(clusters.estimate(1, false).deviation > 50);
});

test("one tenant that has most of an arm's requests makes the arm's mean no surer than itself", () => {
  const clusters = new ClusterMeans(2);
  const random = randomFor(6, 6);
  for (let i = 0; i < 200; i++) {
    clusters.add(0, `tenant ${i % 20}`, normal(random), 0);
    clusters.add(1, `tenant ${i % 10 === 0 ? 20 + (i % 7) : 99}`, normal(random), 0);
  }
  const { degrees } = clusters.estimate(1, false);
  assert.ok(degrees < 1, `${degrees}`);
  assert.equal(reach(clusters.estimate(1, false), 0.05, 0.1), Infinity);
});

test("a histogram's mean is exact, its quantiles are near, merged and restored ones too", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(5_000_000_000), { minLength: 1, maxLength: 300 }), fc.nat(300), (values, at) => {
      const [first, second] = [new TimeHistogram(), new TimeHistogram()];
      values.forEach((value, i) => (i < at ? first : second).add(value));
      first.merge(second);
      const both = new TimeHistogram(JSON.parse(JSON.stringify(first.saved())) as ReturnType<TimeHistogram["saved"]>);
      assert.equal(both.mean, values.reduce((sum, value) => sum + value, 0) / values.length);
      const sorted = [...values].sort((a, b) => a - b);
      for (const q of [0.5, 0.9, 0.99, 1]) {
        const exact = sorted[Math.max(1, Math.ceil(q * values.length)) - 1]!;
        assert.ok(Math.abs(both.quantile(q) - exact) <= exact / 128, `${both.quantile(q)} ${exact}`);
      }
    }),
  );
});
