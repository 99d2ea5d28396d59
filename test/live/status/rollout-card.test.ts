import assert from "node:assert/strict";
import { test } from "node:test";
import type { DesignView } from "#live/admin/rollout-view.ts";
import { rolloutCard } from "#live/status/rollout-card.ts";
import { armViewCase, rolloutViewCase } from "../rollout/rollout-view-case.ts";

test("arms have their figures, and a time without samples has none", () => {
  const { arms, window } = rolloutCard(rolloutViewCase());
  const times = { mean: 120, p50: 100, p99: 300 };
  const figures = { share: "", requests: 100, failed: 2, refused: 1, hitRatio: 0.5, goodput: 0.9, imbalance: 1.2 };
  assert.deepEqual(arms, [
    { name: "a", profile: "a", ...figures, ttft: times, tpot: null, e2e: times },
    { name: "b", profile: "as the policy has it", ...figures, ttft: times, tpot: null, e2e: times },
  ]);
  assert.deepEqual(window, { number: 7, endsAt: Date.parse("2026-03-04T14:08:00Z"), arm: "b", isWashout: true });
});

test("intervals over time are of means, from where there are any, beside what was predicted", () => {
  const { intervals } = rolloutCard(rolloutViewCase());
  assert.deepEqual(
    intervals.map(({ arm, metric, points }) => [arm, metric, points.length]),
    [
      ["b", "ttft", 1],
      ["b", "tpot", 0],
      ["b", "e2e", 0],
    ],
  );
  assert.deepEqual(intervals[0], {
    arm: "b",
    metric: "ttft",
    points: [{ at: Date.parse("2026-03-04T14:04:00Z"), mean: -22, low: -27, high: -17 }],
    predicted: { low: -30, high: -10, verdict: "agrees" },
  });
});

test("each arm has its own points where it had a window, and none where it had not", () => {
  const none = { meanMillis: null, p50Millis: null, p90Millis: null };
  const ttft = { meanMillis: 120, p50Millis: 100, p90Millis: 180 };
  const [idle, busy] = [
    { ttft: none, tpot: none, e2e: none },
    { ttft, tpot: none, e2e: none },
  ].map((times, i) => {
    return { requests: i, times };
  });
  const windows = [
    { window: 4, endedAt: "2026-03-04T14:00:00Z", arms: [busy!, idle!] },
    { window: 5, endedAt: "2026-03-04T14:01:00Z", arms: [idle!, busy!] },
  ];
  const [first, second] = rolloutCard(rolloutViewCase({ windows })).windows;
  assert.deepEqual(first, {
    metric: "ttft",
    arms: [
      { name: "a", points: [{ at: Date.parse("2026-03-04T14:00:00Z"), mean: 120, low: 100, high: 180 }] },
      { name: "b", points: [{ at: Date.parse("2026-03-04T14:01:00Z"), mean: 120, low: 100, high: 180 }] },
    ],
  });
  assert.deepEqual(
    second?.arms.flatMap(({ points }) => points),
    [],
  );
});

test("a guardrail shows how much of its limit is used, once there are samples enough", () => {
  const { guardrails } = rolloutCard(rolloutViewCase());
  assert.deepEqual(guardrails, [
    { figure: "error-rate", arm: "b", limit: "at most 4 %", used: 0.5, value: "2.00 %" },
    { figure: "ttft.p99", arm: "b", limit: "at most 2 times the control's", used: null, value: "300 ms" },
  ]);
});

test("of a guardrail that has no value, no limit, or too few samples, nothing is used; any failure uses a limit of 0", () => {
  const [one] = rolloutViewCase().guardrails;
  const used = (more: Partial<NonNullable<typeof one>>) =>
    rolloutCard(rolloutViewCase({ guardrails: [{ ...one!, samples: 50, samplesMin: 20, ...more }] })).guardrails[0]
      ?.used;
  assert.equal(used({ value: 0.03, limit: 0.04 }), 0.75);
  assert.equal(used({ value: null, limit: 0.04 }), null);
  assert.equal(used({ value: 0.03, limit: null }), null);
  assert.equal(used({ value: 0.03, limit: 0.04, samples: 19 }), null);
  assert.equal(used({ value: 0.03, limit: 0.04, samples: 20 }), 0.75);
  assert.deepEqual([used({ value: 0.03, limit: 0 }), used({ value: 0, limit: 0 })], [1, 0]);
});

test("steps have who made them", () => {
  assert.deepEqual(
    rolloutCard(rolloutViewCase()).steps.map(({ step, by, reason }) => [step, by, reason]),
    [
      ["start", "ana", "asked for"],
      ["promote b", "bo", ""],
    ],
  );
});

test("every design is described by what it does to requests", () => {
  const common = { windowMillis: 90_000, washoutMillis: null, by: "session", label: null } as const;
  const text = (design: DesignView, more = {}) => rolloutCard(rolloutViewCase({ design, ...more })).design;
  assert.equal(
    rolloutCard(rolloutViewCase()).design,
    "Switchback: the whole fleet alternates between the arms in windows of 1 min, the first 10 s of each left out.",
  );
  assert.match(text({ ...common, kind: "split" }), /^Split: sessions are spread over the arms.*windows of 90 s\.$/);
  assert.match(text({ ...common, kind: "pools", label: "pool" }), /by their label pool/);
  assert.match(text({ ...common, kind: "shadow", by: null }), /without any effect/);
  const canary = { step: 1, stepPercents: [1, 5, 25] };
  assert.equal(
    text({ ...common, kind: "canary" }, { canary }),
    "Canary: 5 % of sessions are on b, step 2 of 3 (1, 5, 25 %), 90 s each.",
  );
});

test("what an arm has of the traffic is shown where arms run side by side", () => {
  const design = { kind: "canary", windowMillis: 1_000, washoutMillis: null, by: "request", label: null } as const;
  const arms = [
    armViewCase("a", { isControl: true, sharePercent: 95 }),
    armViewCase("b", { sharePercent: 5, pool: "blue" }),
  ];
  assert.deepEqual(
    rolloutCard(rolloutViewCase({ design, arms })).arms.map(({ share }) => share),
    ["95 % now", "5 % now, pool blue"],
  );
  const agreement = { decisions: 1_000, agreed: 931, addedHitTokensMean: null };
  const shadow = rolloutViewCase({
    design: { ...design, kind: "shadow" },
    arms: [armViewCase("a"), armViewCase("b", { agreement })],
  });
  assert.deepEqual(
    rolloutCard(shadow).arms.map(({ share }) => share),
    ["", "agrees in 93.1 % of decisions"],
  );
});
