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

/** A split that shows 20 ms of a true 600. */
function study(biasError: number): DesignStudy {
  const figures = KEYS.map((key) => [key, { truth: 600_000, estimate: 20_000, biasError }]);
  return { figures: Object.fromEntries(figures) as unknown as DesignStudy["figures"] } as DesignStudy;
}

/** The traffic leaves nothing open. */
const STILL = Object.fromEntries(KEYS.map((key) => [key, { error: 0, covered: 9, of: 9 }]));

test("what drawn engines make of what the design shows widens its interval, not what they make of the truth", () => {
  // Whole rollouts differ by 100 ms; the engines move each by a few.
  const moved = [-6_000, -3_000, 0, 2_000, 7_000];
  const pairs = moved.map((micros, run) => ({ fitted: sample(100_000 * run), drawn: sample(100_000 * run + micros) }));
  const { low, high } = shownIntervals(study(0), pairs, STILL)["e2e.mean"]!;
  assert.ok(low > 5_000 && low < 14_000 && high > 27_000 && high < 35_000, `${low} ${high}`);
  const wider = shownIntervals(study(10_000), pairs, STILL)["e2e.mean"]!;
  assert.ok(wider.high - 20_000 > 16_400 && wider.high - 20_000 < high - 20_000 + 16_500, String(wider.high));
  const without = shownIntervals(study(10_000), [], STILL)["e2e.mean"]!;
  assert.ok(Math.abs(without.high - 20_000 - 16_449) < 50 && Math.abs(20_000 - without.low - 16_449) < 50);
  assert.deepEqual(shownIntervals(study(NaN), pairs, STILL), {});
});
