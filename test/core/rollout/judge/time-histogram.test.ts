import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { TimeHistogram } from "#core/rollout/judge/time-histogram.ts";

function filled(values: number): TimeHistogram {
  const random = randomFor(11, 1);
  const histogram = new TimeHistogram();
  for (let i = 0; i < values; i++) histogram.add(Math.round(-100_000 * Math.log(1 - random.next())));
  return histogram;
}

test("what a figure is at least is below it, and comes near with the count", () => {
  const histogram = filled(20_000);
  const evidence = Math.log(20);
  for (const name of ["mean", "p50", "p90", "p99"] as const) {
    const spans = [400, 2_000, 20_000].map((count) => {
      const low = histogram.atLeast(name, count, evidence);
      const figure = histogram.figure(name);
      assert.ok(low < figure, `${name} of ${count}: ${low} ${figure}`);
      return figure - low;
    });
    assert.deepEqual(
      spans,
      spans.toSorted((a, b) => b - a),
      name,
    );
  }
});

test("what was saved is the same again", () => {
  const histogram = filled(1_000);
  const again = new TimeHistogram(histogram.saved());
  assert.deepEqual(again.saved(), histogram.saved());
  assert.equal(again.figure("p90"), histogram.figure("p90"));
  assert.equal(again.above(200_000), histogram.above(200_000));
});

test("equals sorted samples, whatever is added, merged, saved in any order and read again", () => {
  const random = randomFor(11, 2);
  for (let run = 0; run < 100; run++) {
    const draw = () => Math.floor(2 ** (random.next() * (run % 2 === 0 ? 8 : 44)));
    const [own, other] = [0, 1].map(() => Array.from({ length: 1 + random.below(60) }, draw));
    const [histogram, merged] = [new TimeHistogram(), new TimeHistogram()];
    for (const value of own!) histogram.add(value);
    for (const value of other!) merged.add(value);
    histogram.merge(merged);
    const saved = histogram.saved();
    const backwards = saved.buckets.map((_, i, all) => all.at(i % 2 === 0 ? -2 - i : -i)!);
    const sorted = [...own!, ...other!].sort((a, b) => a - b);
    for (const one of [histogram, new TimeHistogram({ ...saved, buckets: backwards })]) {
      assert.deepEqual(one.saved(), saved);
      for (const q of [0, 0.1, 0.5, 0.9, 0.99, 1]) {
        const exact = sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)]!;
        const error = Math.abs(one.quantile(q) - exact);
        assert.ok(error <= exact / 256, `${q} of ${sorted.join(" ")}: ${one.quantile(q)}`);
        const above = sorted.filter((value) => value > exact * (1 + 1 / 100)).length;
        assert.ok(one.above(exact) >= above && one.above(exact) <= sorted.filter((value) => value >= exact).length);
      }
    }
  }
});
