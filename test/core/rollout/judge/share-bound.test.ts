import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { ArmTally } from "#core/rollout/judge/arm-tally.ts";
import { Guard } from "#core/rollout/judge/guard.ts";
import type { Guardrail } from "#core/rollout/judge/guardrail.ts";
import { MemberTallies } from "#core/rollout/judge/member-tallies.ts";
import type { RolloutOutcome } from "#core/rollout/judge/outcome.ts";
import { RelativeLimits } from "#core/rollout/judge/relative-limits.ts";
import { shareAtLeast, shareEvidence, shareNeeded } from "#core/rollout/judge/share-bound.ts";

const near = (value: number, expected: number) =>
  assert.ok(Math.abs(value - expected) < 1e-9 * Math.max(1, Math.abs(expected)), `${value} for ${expected}`);

test("the evidence is the mixture's likelihood over that of the share", () => {
  // All three above a tenth: half of 1 / 4, and of 3! over 6 * 7 * 8 for a weight of 5, over 0.001.
  near(shareEvidence(3, 1, 0.1), Math.log((250 + 6_000 / 336) / 2));
  // 2 of 5: the beta function of 3 and 4, 1 / 60.
  near(shareEvidence(5, 0.4, 0.5), Math.log(2 ** 5 / 60));
  // A half and more often is all shares alike, and rare misses are what rare hits are.
  near(
    shareEvidence(200, 0.25, 0.5),
    Math.log(1 / 201) - logBinomial(200, 50) - 50 * Math.log(0.5) - 150 * Math.log(0.5),
  );
  near(shareEvidence(200, 0.98, 0.99), shareEvidence(200, 0.02, 0.01));
  // Five of a thousand beside one show more than by all shares alike.
  const alike = -Math.log(1_001) - logBinomial(1_000, 5) - 5 * Math.log(0.001) - 995 * Math.log(0.999);
  assert.ok(shareEvidence(1_000, 0.005, 0.001) > alike + 1.5);
  assert.equal(shareEvidence(4, 0.5, 0), Infinity);
  assert.ok(shareEvidence(7.3, 1, 0.1) > shareEvidence(7, 1, 0.1));
});

function logBinomial(n: number, k: number): number {
  let sum = 0;
  for (let i = 1; i <= k; i++) sum += Math.log((n - k + i) / i);
  return sum;
}

test("the least share that shows it and what a share shows at least are the same boundary", () => {
  const evidence = Math.log(160);
  for (const count of [4, 5.5, 12, 80, 4_000]) {
    const needed = shareNeeded(count, 0.1, evidence);
    assert.ok(needed > 0.1 && needed <= 1);
    near(shareAtLeast(count, needed, evidence), 0.1);
    assert.ok(shareAtLeast(count, Math.max(0.1, 0.98 * needed), evidence) < 0.1);
  }
  assert.ok(shareNeeded(4_000, 0.1, evidence) < 0.13);
  assert.equal(shareNeeded(2, 0.1, evidence), Infinity);
  assert.equal(shareNeeded(0, 0.1, evidence), Infinity);
  assert.equal(shareAtLeast(50, 0, evidence), 0);
});

const RUNS = 400;
const GUARDED_RUNS = 150;

test("looked at after every draw, a share of a tenth is found to be above it at most as often as promised", () => {
  let alarms = 0;
  for (let run = 0; run < RUNS; run++) {
    const random = randomFor(31, run);
    let hits = 0;
    for (let count = 1; count <= 200; count++) {
      if (random.next() < 0.1) hits++;
      if (hits <= 0.1 * count || shareEvidence(count, hits / count, 0.1) < Math.log(20)) continue;
      alarms++;
      break;
    }
  }
  assert.ok(alarms > 0 && alarms <= 0.05 * RUNS, `${alarms}`);
});

/**
 * Requests of a second have one time, which nine of ten seconds have below 300 ms; the control's is measured on its
 * own.
 */
function alarmsOf(guardrail: Guardrail, level: number): number {
  let alarms = 0;
  for (let run = 0; run < GUARDED_RUNS; run++) {
    const random = randomFor(47, run);
    const guard = new Guard(2, [guardrail], { level });
    let crossed = false;
    for (let second = 0; second < 80 && !crossed; second++) {
      for (const arm of [0, 1]) {
        const ttft = Math.round(300_000 * (random.next() / 0.9) ** 4);
        const outcome = {
          arm,
          stretch: 20e6 * Math.floor(second / 20),
          slice: second % 20,
          times: { ttft, tpot: 1, e2e: ttft },
        };
        for (let i = 0; i < 10; i++) guard.observe({ ...REST, ...outcome });
      }
      crossed = guard.readings([], NONE).some((one) => one.crossed);
    }
    if (crossed) alarms++;
  }
  return alarms;
}

const NONE = { totals: [new ArmTally(), new ArmTally()], groups: undefined, members: new MemberTallies(2, new Set()) };

const REST: Omit<RolloutOutcome, "arm" | "stretch" | "slice" | "times"> = {
  window: 0,
  counted: true,
  cluster: "",
  status: "ok",
  endpoint: "",
  promptTokens: 1,
  cachedTokens: undefined,
};

test("a limit that an arm just keeps is found crossed in at most the promised share of rollouts, at any look", () => {
  const limits: readonly Guardrail[] = [
    { figure: "ttft.p90", absoluteMax: 300_000, samplesMin: 10 },
    { figure: "ttft.mean", absoluteMax: 300_000 / (5 * 0.9 ** 4), samplesMin: 10 },
  ];
  for (const limit of limits) {
    const alarms = alarmsOf(limit, 0.05);
    assert.ok(alarms <= 0.05 * GUARDED_RUNS, `${JSON.stringify(limit)} ${alarms}`);
  }
  // What is surely beyond its limit is found.
  assert.ok(alarmsOf({ figure: "ttft.p50", absoluteMax: 300, samplesMin: 10 }, 0.05) > 0.9 * GUARDED_RUNS);
});

/**
 * Two pools, windows of 20 s: in each window one pool is slower by luck, up to eight times, and the other arm by
 * `worse`.
 */
function poolsTakenBack(worse: number, windows: number): { readonly runs: number; readonly windowsMean: number } {
  let [runs, sum] = [0, 0];
  for (let run = 0; run < GUARDED_RUNS; run++) {
    const random = randomFor(53, run);
    const limits = new RelativeLimits(2, [{ figure: "ttft.p90", relativeMax: 2, samplesMin: 10 }], {
      level: 0.05,
      pools: "kept",
    });
    const totals = [new ArmTally(), new ArmTally()];
    for (let window = 0; window < windows; window++) {
      const block = totals.map((total, arm) => {
        const tally = new ArmTally();
        const ttft = Math.round(100_000 * 8 ** random.next() * (arm === 1 ? worse : 1));
        const outcome = { ...REST, arm, stretch: 20e6 * window, slice: 0, times: { ttft, tpot: 1, e2e: ttft } };
        for (let i = 0; i < 20; i++) tally.add(outcome);
        total.merge(tally);
        return tally;
      });
      limits.compareBlock(block, NONE.members);
      if (!limits.readings({ ...NONE, totals }, []).some(({ crossed }) => crossed)) continue;
      runs++;
      sum += window;
      break;
    }
  }
  return { runs, windowsMean: sum / runs };
}

test("pools differ by luck, window by window: none is taken back for it, and a worse arm is after some windows", () => {
  assert.ok(poolsTakenBack(1, 40).runs <= 0.05 * GUARDED_RUNS);
  const { runs, windowsMean } = poolsTakenBack(12, 60);
  assert.ok(runs > 0.95 * GUARDED_RUNS && windowsMean < 30, `${runs} ${windowsMean}`);
});
