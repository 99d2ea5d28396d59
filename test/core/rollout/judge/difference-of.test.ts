import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { ClusterMeans } from "#core/rollout/judge/cluster-means.ts";
import { differenceOf } from "#core/rollout/judge/difference-of.ts";
import type { SplitKey } from "#core/rollout/plan/rollout-plan.ts";

const LEVEL = 0.05;
const ABOUT = { arm: 1, metric: "ttft", figure: "mean" } as const;

function rules(by: SplitKey) {
  const design = { kind: "canary", windowMicros: 1, by, stepPercents: [5] } as const;
  return { design, level: LEVEL, plannedCount: 1000 };
}

function meansOf(means: ClusterMeans) {
  return [means.estimate(1, false), means.estimate(1, true)] as const;
}

/** Share of runs in which an interval leaves out 0 at some look; a canary's requests take `factor` times as long. */
function foundShare(runs: number, factor: number): number {
  let all = 0;
  for (let run = 0; run < runs; run++) {
    const random = randomFor(17, run);
    const means = new ClusterMeans(2);
    let found = false;
    for (let i = 0; i < 2500; i++) {
      // Most are quick, and some wait long: a skewness of about 4.
      const micros = 100_000 * (1 + random.next());
      const slow = random.next() < 0.08 ? 1 + 9 * random.next() : 1;
      const arm = random.next() < 0.1 ? 1 : 0;
      means.add(arm, "", micros * slow * (arm === 1 ? factor : 1), undefined);
      if (i % 25 !== 0) continue;
      const { low, high } = differenceOf(ABOUT, meansOf(means), rules("request"));
      found ||= low > 0 || high < 0;
    }
    if (found) all++;
  }
  return all / runs;
}

test("a canary's few requests, most of them quick and a few very slow, are not taken for quicker at any look; what is slower is found", () => {
  const runs = 200;
  const alarms = foundShare(runs, 1);
  const error = Math.sqrt((LEVEL * (1 - LEVEL)) / runs);
  assert.ok(alarms <= LEVEL + error, String(alarms));
  assert.ok(foundShare(20, 2) > 0.8);
});

test("of few requests or sessions there is no interval, of few tenants there is", () => {
  for (const [count, by, finite] of [
    [30, "request", false],
    [30, "session", false],
    [45, "session", true],
    [12, "tenant", true],
  ] as const) {
    const means = new ClusterMeans(2);
    for (let i = 0; i < 10 * count; i++) means.add(i < count ? 1 : 0, `c${i}`, 1000 + (i % 7), undefined);
    const { low, high, evidence } = differenceOf(ABOUT, meansOf(means), rules(by));
    assert.deepEqual([Number.isFinite(low), Number.isFinite(high)], [finite, finite], `${count} by ${by}`);
    if (!finite) assert.equal(evidence, 1);
  }
});
