import assert from "node:assert/strict";
import { test } from "node:test";
import type { Design } from "#core/rollout/plan/rollout-plan.ts";
import { defaultGuardrails } from "#serve/rollout/guardrails.ts";
import { type ArmEffect, outcomeRollout } from "../../../../bench/rollout/outcome-rollout.ts";
import { drawnTraffic } from "../../../../bench/rollout/outcome-traffic.ts";

const WINDOW_MICROS = 60_000_000;
const SPLIT: Design = { kind: "split", windowMicros: WINDOW_MICROS, by: "session" };
const DESIGNS: readonly Design[] = [
  { kind: "switchback", windowMicros: WINDOW_MICROS, washoutMicros: WINDOW_MICROS / 5 },
  { kind: "pools", windowMicros: WINDOW_MICROS, by: "session", label: "pool" },
  { kind: "pools", windowMicros: WINDOW_MICROS, by: "session", label: "pool", redrawn: true },
  SPLIT,
  { ...SPLIT, by: "tenant" },
  { kind: "canary", windowMicros: WINDOW_MICROS, by: "session", stepPercents: [25, 50, 100] },
];

/** What looks at rollouts of 20 minutes with sessions, tenants, drift and bursts found, and what was done about it. */
function rolled(
  design: Design,
  seeds: number,
  effect?: ArmEffect,
): { readonly alarms: number; readonly steps: string[][] } {
  const seconds = 1200;
  let alarms = 0;
  const steps = Array.from({ length: seeds }, (_, i) => {
    const seed = i + 1;
    let found = false;
    const run = outcomeRollout({
      traffic: drawnTraffic(seed, seconds, 6),
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
    const { alarms, steps } = rolled(design, 8);
    assert.ok(alarms <= 1, `${alarms} of 8`);
    assert.ok(steps.flat().filter((step) => step === "rollback").length === 0, steps.join("; "));
  });
}

test("an arm that takes 60 % longer is taken back by the limits that a rollout has by default", () => {
  const slower: ArmEffect = (outcome) => ({ ...outcome, ttft: 1.6 * outcome.ttft, tpot: 1.6 * outcome.tpot });
  for (const { last } of rolled(SPLIT, 6, slower).steps.map((steps) => ({ last: steps.at(-1) })))
    assert.equal(last, "rollback");
});

test("an effect that outlasts the washout pauses a switchback as carry-over, one that is there at once does not", () => {
  const design: Design = { kind: "switchback", windowMicros: WINDOW_MICROS / 2, washoutMicros: WINDOW_MICROS / 10 };
  const slower: ArmEffect = (outcome) => ({ ...outcome, ttft: 1.5 * outcome.ttft, tpot: 1.5 * outcome.tpot });
  const pausesWith = (carrySeconds: number) =>
    [1, 2, 3].flatMap((seed) => {
      const traffic = drawnTraffic(seed, 2400, 6);
      const run = { traffic, design, seed, seconds: 2400, plannedCount: 40, guardrails: [], speed: 4, effect: slower };
      const { steps } = outcomeRollout({ ...run, carrySeconds, accepts: () => true });
      return steps.filter(({ step }) => step === "pause").map(({ reason }) => reason);
    });
  assert.deepEqual(pausesWith(0), []);
  const reasons = pausesWith(15);
  assert.equal(reasons.length, 3);
  for (const reason of reasons)
    assert.match(reason, /changes by [\d.]+ % within windows, .* windows of 90 s with a washout of 30 s/);
});
