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

test("the upper end of a mean is 1.645 standard errors above it, and comes near as more is known", () => {
  const histogram = filled(20_000);
  // Of an exponential distribution the deviation is the mean.
  for (const count of [100, 400, 10_000]) {
    const above = histogram.atMost("mean", count) / histogram.mean - 1;
    const expected = 1.645 / Math.sqrt(count);
    assert.ok(Math.abs(above / expected - 1) < 0.05, `${count}: ${above} beside ${expected}`);
  }
});

test("what a figure is at least and at most has it between them, and narrows with the count", () => {
  const histogram = filled(20_000);
  const evidence = Math.log(20);
  for (const name of ["mean", "p50", "p90", "p99"] as const) {
    const spans = [400, 2_000, 20_000].map((count) => {
      const [low, high] = [histogram.atLeast(name, count, evidence), histogram.atMost(name, count)];
      const figure = histogram.figure(name);
      assert.ok(low < figure && figure < high, `${name} of ${count}: ${low} ${figure} ${high}`);
      return high - low;
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
