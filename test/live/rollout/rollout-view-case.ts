import type { ArmView, DifferenceView, RolloutView, TimeView } from "#live/admin/rollout-view.ts";

const TIME: TimeView = { samples: 90, meanMillis: 120, p50Millis: 100, p90Millis: 180, p99Millis: 300 };
const NO_TIME: TimeView = { samples: 0, meanMillis: null, p50Millis: null, p90Millis: null, p99Millis: null };

export function armViewCase(name: string, more: Partial<ArmView> = {}): ArmView {
  return {
    name,
    profile: name,
    pool: null,
    isControl: false,
    sharePercent: 50,
    total: {
      requests: 100,
      failed: 2,
      refused: 1,
      errorRate: 0.02,
      refusedRate: 0.01,
      goodput: 0.9,
      hitRatio: 0.5,
      imbalance: 1.2,
      times: { ttft: TIME, tpot: NO_TIME, e2e: TIME },
    },
    agreement: null,
    ...more,
  };
}

function difference(figure: DifferenceView["figure"], meanMillis: number | null): DifferenceView {
  const [lowMillis, highMillis] = meanMillis === null ? [null, null] : [meanMillis - 5, meanMillis + 5];
  const common = { arm: "b", metric: "ttft", count: 12, isSignificant: true, varianceLeft: 0.4 } as const;
  return { ...common, figure, meanMillis, lowMillis, highMillis };
}

/** A switchback of two arms in mid-run. */
export function rolloutViewCase(more: Partial<RolloutView> = {}): RolloutView {
  return {
    name: "r",
    model: "m",
    phase: "running",
    since: "2026-03-04T14:00:00.000Z",
    reason: "asked for",
    by: "ana",
    health: [],
    scope: "",
    verdict: { text: "after 3 of 9 blocks: nothing", advice: "wait", done: 3, planned: 9, unit: "blocks" },
    design: { kind: "switchback", windowMillis: 60_000, washoutMillis: 10_000, by: null, label: null },
    arms: [armViewCase("a", { isControl: true }), armViewCase("b", { profile: "" })],
    window: {
      number: 7,
      startedAt: "2026-03-04T14:07:00.000Z",
      endsAt: "2026-03-04T14:08:00.000Z",
      arm: "b",
      isWashout: true,
    },
    canary: null,
    cooldownEndsAt: null,
    level: 0.05,
    differences: [difference("mean", -20), difference("p99", -90)],
    guardrails: [
      {
        arm: "b",
        figure: "error-rate",
        unit: "share",
        value: 0.02,
        low: 0.01,
        control: 0.02,
        limit: 0.04,
        absoluteMax: 0.04,
        relativeMax: null,
        each: null,
        samples: 100,
        samplesMin: 50,
        crossed: false,
      },
      {
        arm: "b",
        figure: "ttft.p99",
        unit: "millis",
        value: 300,
        low: null,
        control: 310,
        limit: null,
        absoluteMax: null,
        relativeMax: 2,
        each: null,
        samples: 10,
        samplesMin: 50,
        crossed: false,
      },
    ],
    predictions: [{ arm: "b", metric: "ttft", figure: "mean", lowMillis: -30, highMillis: -10, verdict: "agrees" }],
    steps: [
      { at: "2026-03-04T14:00:00.000Z", step: "start", arm: "", reason: "asked for", by: "ana" },
      { at: "2026-03-04T14:30:00.000Z", step: "promote", arm: "b", reason: "", by: "bo" },
    ],
    intervals: [
      { at: "2026-03-04T14:02:00.000Z", window: 1, differences: [difference("mean", null), difference("p99", -40)] },
      { at: "2026-03-04T14:04:00.000Z", window: 3, differences: [difference("mean", -22), difference("p99", -80)] },
    ],
    inFlight: 3,
    lateOutcomes: 0,
    outOfOrder: 0,
    adjustment: null,
    windows: [],
    ...more,
  };
}
