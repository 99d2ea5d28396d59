import assert from "node:assert/strict";
import { test } from "node:test";
import type { DesignStudy } from "#shadow/rollout/design-study.ts";
import type { RolloutSample } from "#shadow/job/rollout-sample.ts";
import { shownIntervals } from "#shadow/rollout/shown-interval.ts";

const KEYS = ["ttft.mean", "ttft.p99", "tpot.mean", "tpot.p99", "e2e.mean", "e2e.p99"] as const;

function sample(mean: number): RolloutSample {
  const estimate = { count: 10, mean, deviation: 1, degrees: 9 };
  const figures = KEYS.map((key) => [key, { plain: estimate, adjusted: estimate, blocks: undefined }]);
  return {
    figures: Object.fromEntries(figures) as RolloutSample["figures"],
    requests: 10,
    failed: [0, 0],
    takenBack: false,
  };
}

/** One that shows 20 ms of a true 600; a rollout of the trace's ten minutes has a hundred values. */
function study(biasError: number, runError = 0, kind = "split"): DesignStudy {
  const one = { truth: 600_000, estimate: 20_000, biasError, runError, clusters: 100, valuesPerHour: 600 };
  const figures = Object.fromEntries(KEYS.map((key) => [key, one])) as unknown as DesignStudy["figures"];
  return { figures, design: { kind } } as DesignStudy;
}

/** The traffic leaves nothing open. */
const STILL = Object.fromEntries(KEYS.map((key) => [key, { error: 0, covered: 9, of: 9 }]));

test("what drawn engines make of what the design shows widens its interval, not what they make of the truth", () => {
  // Whole rollouts differ by 100 ms; the engines move each by a few.
  const moved = [-6_000, -3_000, 0, 2_000, 7_000];
  const pairs = moved.map((micros, run) => ({ fitted: sample(100_000 * run), drawn: sample(100_000 * run + micros) }));
  const { low, high } = shownIntervals(study(0), pairs, STILL, 1)["e2e.mean"]!;
  assert.ok(low > 5_000 && low < 14_000 && high > 27_000 && high < 35_000, `${low} ${high}`);
  const wider = shownIntervals(study(10_000), pairs, STILL, 1)["e2e.mean"]!;
  assert.ok(wider.high - 20_000 > 16_400 && wider.high - 20_000 < high - 20_000 + 16_500, String(wider.high));
  const without = shownIntervals(study(10_000), [], STILL, 1)["e2e.mean"]!;
  assert.ok(Math.abs(without.high - 20_000 - 16_449) < 50 && Math.abs(20_000 - without.low - 16_449) < 50);
  assert.deepEqual(shownIntervals(study(NaN), pairs, STILL, 1), {});
});

test("one rollout shows what chance makes of it, less the longer it runs; blocks have what other traffic differs by in that", () => {
  const halfOf = (hours: number, error: number, kind: string) => {
    const traffic = { "e2e.mean": { error, drift: 1, covered: 9, of: 9 } };
    const { low, high } = shownIntervals(study(0, 10_000, kind), [], traffic, hours)["e2e.mean"]!;
    assert.ok(Math.abs((low + high) / 2 - 20_000) < 1e-6);
    return (high - low) / 2;
  };
  const near = (value: number, expected: number) => assert.ok(Math.abs(value / expected - 1) < 1e-3, `${value}`);
  near(halfOf(1 / 6, 0, "split"), 16_449);
  near(halfOf(4 / 6, 0, "split"), 16_449 / 2);
  near(halfOf(1e9, 1_000, "split"), 1_860 * Math.SQRT2);
  near(halfOf(1e9, 1_000, "switchback"), 1_860);
});
