import assert from "node:assert/strict";
import { test } from "node:test";
import type { Design } from "#core/rollout/plan/rollout-plan.ts";
import { proposedStep } from "#core/rollout/proposed-step.ts";
import { plannedRollout, type RolloutState, steppedRollout } from "#core/rollout/rollout-state.ts";
import { defaultGuardrails } from "#serve/rollout/guardrails.ts";
import { type ArmEffect, outcomeRollout } from "../../../../bench/rollout/outcome-rollout.ts";
import { planOf, stepOf, WINDOW_MICROS } from "../rollout-case.ts";
import { drawnTraffic } from "../../../../bench/rollout/outcome-traffic.ts";

const SPLIT: Design = { kind: "split", windowMicros: WINDOW_MICROS, by: "session" };
const DESIGNS: readonly Design[] = [
  { kind: "switchback", windowMicros: WINDOW_MICROS, washoutMicros: WINDOW_MICROS / 5 },
  { kind: "pools", windowMicros: WINDOW_MICROS, by: "session", label: "pool" },
  { kind: "pools", windowMicros: WINDOW_MICROS, by: "session", label: "pool", redrawn: true },
  SPLIT,
  { ...SPLIT, by: "tenant" },
  { kind: "canary", windowMicros: WINDOW_MICROS, by: "session", stepPercents: [25, 50, 100] },
];

const drawn = new Map<string, ReturnType<typeof drawnTraffic>>();

/** Drawn once for all designs. */
function trafficOf(seed: number, seconds: number): ReturnType<typeof drawnTraffic> {
  const key = `${seed} ${seconds}`;
  const traffic = drawn.get(key) ?? drawnTraffic(seed, seconds, 6);
  drawn.set(key, traffic);
  return traffic;
}

/** What looks at rollouts with sessions, tenants, drift and bursts found, and what was done about it. */
function rolled(
  design: Design,
  seeds: number,
  effect?: ArmEffect,
  seconds = 1200,
): { readonly alarms: number; readonly steps: string[][] } {
  let alarms = 0;
  const steps = Array.from({ length: seeds }, (_, i) => {
    const seed = i + 1;
    let found = false;
    const run = outcomeRollout({
      traffic: trafficOf(seed, seconds),
      design,
      seed,
      seconds,
      plannedCount: design.kind === "switchback" ? 10 : seconds,
      guardrails: defaultGuardrails(),
      speed: 1.5,
      ...(effect && { effect }),
      accepts: () => true,
      looked: ({ verdict }) => (found ||= verdict.differences.some(({ low, high }) => low > 0 || high < 0)),
    });
    if (found) alarms++;
    return run.steps.map(({ step }) => step);
  });
  return { alarms, steps };
}

for (const design of DESIGNS) {
  const redrawn =
    design.kind === "pools" && design.redrawn === true ? ` drawn anew each ${design.windowMicros} us` : "";
  const by = "by" in design ? ` by ${design.by}${redrawn}` : "";
  test(`equal arms on hostile traffic: nothing is found or taken back at any look: ${design.kind}${by}`, () => {
    const { alarms, steps } = rolled(design, 3);
    assert.equal(alarms, 0, `${alarms} of 3`);
    assert.ok(steps.flat().filter((step) => step === "rollback").length === 0, steps.join("; "));
  });
}

test("an arm that takes 60 % longer is taken back by the limits that a rollout has by default", () => {
  const slower: ArmEffect = (outcome) => ({ ...outcome, ttft: 1.6 * outcome.ttft, tpot: 1.6 * outcome.tpot });
  for (const { last } of rolled(SPLIT, 3, slower).steps.map((steps) => ({ last: steps.at(-1) })))
    assert.equal(last, "rollback");
});

/** Harm that most limits on means and medians miss, and in how long the default limits find it in a split. */
const HARM: readonly (readonly [what: string, minutes: number, effect: ArmEffect])[] = [
  ["errors ten-fold", 50, (outcome, { fault }) => ({ ...outcome, failed: fault < 0.03 })],
  [
    "one tenant five-fold",
    50,
    (outcome, { tenant }) =>
      tenant === "t2" ? { ...outcome, ttft: 5 * outcome.ttft, tpot: 5 * outcome.tpot } : outcome,
  ],
  [
    "3 % of first tokens ten-fold",
    100,
    (outcome, { tail }) => (tail < 0.03 ? { ...outcome, ttft: 10 * outcome.ttft } : outcome),
  ],
];

for (const [what, minutes, effect] of HARM) {
  test(`${what}: the default limits take a split back`, () => {
    for (const { last } of rolled(SPLIT, 1, effect, 60 * minutes).steps.map((steps) => ({ last: steps.at(-1) })))
      assert.equal(last, "rollback");
  });
}

test("a switchback whose windows have too few requests to compare makes them longer, at most twice, and is not paused for it", () => {
  const design: Design = { kind: "switchback", windowMicros: WINDOW_MICROS / 3, washoutMicros: WINDOW_MICROS / 15 };
  const stepsAt = (perSecond: number, seconds: number) => {
    const traffic = drawnTraffic(1, seconds, perSecond);
    const run = { traffic, design, seed: 1, seconds, plannedCount: 20, guardrails: [], speed: 1.5 };
    const { steps, watch } = outcomeRollout({ ...run, accepts: () => true });
    const { count } = watch.judge.difference(1, "e2e", "mean");
    return { steps: steps.slice(1), windowMicros: watch.state.plan.design.windowMicros, count };
  };
  // Sixteen seconds have about a hundred of 6 a second, and three of one in five. 1,800 s are 45 blocks.
  assert.deepEqual(stepsAt(6, 1800).steps, []);
  const few = stepsAt(0.2, 7200);
  assert.deepEqual([...new Set(few.steps.map(({ step }) => step))], ["lengthen"]);
  assert.match(
    few.steps[0]!.reason,
    /^other: its windows have [\d.]+ requests each, and nothing is compared where fewer than 10 ended$/,
  );
  assert.ok(few.count >= 3, `${few.count} blocks`);
  const hardlyAny = stepsAt(0.002, 7200);
  assert.ok(hardlyAny.steps.length <= 2 && hardlyAny.steps.every(({ step }) => step === "lengthen"));
});

test("an effect that outlasts the washout makes a switchback's windows longer; one that is there at once does not", () => {
  const design: Design = { kind: "switchback", windowMicros: WINDOW_MICROS / 2, washoutMicros: WINDOW_MICROS / 10 };
  const slower: ArmEffect = (outcome) => ({ ...outcome, ttft: 1.5 * outcome.ttft, tpot: 1.5 * outcome.tpot });
  const rolledWith = (carrySeconds: number) =>
    [1, 2].map((seed) => {
      const traffic = trafficOf(seed, 3600);
      const run = { traffic, design, seed, seconds: 3600, plannedCount: 40, guardrails: [], speed: 4, effect: slower };
      return outcomeRollout({ ...run, carrySeconds, accepts: () => true });
    });
  const healthOf = ({ steps }: ReturnType<typeof outcomeRollout>) =>
    steps.filter(({ step }) => step === "pause" || step === "lengthen");
  assert.deepEqual(rolledWith(0).flatMap(healthOf), []);
  for (const rollout of rolledWith(15)) {
    const [first, ...more] = healthOf(rollout);
    assert.equal(first?.step, "lengthen");
    const sentence = /changes by [\d.]+ % within windows of 30 s, .*: windows of 90 s with a washout of 30 s/;
    assert.match(first.reason, sentence);
    // That is long enough, so that it goes on.
    assert.deepEqual(more, []);
    const { state, judge } = rollout.watch;
    assert.deepEqual(state.plan.design, {
      ...design,
      windowMicros: 1.5 * WINDOW_MICROS,
      washoutMicros: WINDOW_MICROS / 2,
    });
    // What was compared before is gone: the truth is that it takes half as long again.
    const { mean } = judge.difference(1, "e2e", "mean");
    const share = mean / judge.totals[0]!.time("e2e", "mean");
    assert.ok(share > 0.25 && share < 0.8, String(share));
  }
});

test("windows are made longer twice; an effect that outlasts those too pauses the rollout", () => {
  const design: Design = { kind: "switchback", windowMicros: WINDOW_MICROS / 4, washoutMicros: 0 };
  let state: RolloutState = { ...plannedRollout(planOf(design), 0), phase: "running" };
  const at = 1_000 * WINDOW_MICROS;
  const ailment = { kind: "carry-over", arm: 1, sentence: "it lasts" } as const;
  const verdict = { differences: [], crossings: [], contradictions: [], ailments: [ailment] };
  for (const windowMicros of [3, 9].map((times) => times * design.windowMicros)) {
    const step = proposedStep(state, at, verdict)!;
    assert.equal(step.step, "lengthen");
    const next = steppedRollout(state, { ...step, rollout: state.plan.name });
    if (typeof next === "string") throw new Error(next);
    const before = state.plan.design as typeof design;
    state = next;
    assert.deepEqual(state.plan.design, { ...design, windowMicros, washoutMicros: before.windowMicros });
    // A block of windows is whole: arms take turns as before.
    assert.equal(state.firstWindow % 2, 0);
  }
  assert.equal(proposedStep(state, at, verdict)!.step, "pause");
  const again = steppedRollout(state, stepOf("lengthen", at));
  assert.ok(typeof again === "string");
  assert.match(again, /lengthened at most once/);
});
