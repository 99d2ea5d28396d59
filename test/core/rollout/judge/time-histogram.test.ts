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
