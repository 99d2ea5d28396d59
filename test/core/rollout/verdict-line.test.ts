import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { switchbackArm } from "#core/rollout/assignment.ts";
import { Judge } from "#core/rollout/judge/judge.ts";
import type { RolloutOutcome } from "#core/rollout/judge/outcome.ts";
import type { Design, RolloutPlan } from "#core/rollout/plan/rollout-plan.ts";
import { shrunkMean, verdictLine } from "#core/rollout/verdict-line.ts";
import { after, DESIGNS, planOf, RULES, stepOf, WINDOW_MICROS } from "./rollout-case.ts";

const [SWITCHBACK] = DESIGNS as [Design];
const BY_REQUEST: Design = { kind: "split", windowMicros: WINDOW_MICROS, by: "request" };
const RULES_HERE = { ...RULES, plannedCount: 11, guardrails: [] };

/** So many windows in which the other arm takes `times` as long. */
function judged(plan: RolloutPlan, windows: number, times: number): Judge {
  const judge = new Judge({ plan, ...RULES_HERE });
  for (let window = 0; window < windows; window++) {
    const random = randomFor(3, window);
    const endAt = (window + 1) * WINDOW_MICROS;
    for (let i = 0; i < 40; i++) {
      const arm = plan.design.kind === "switchback" ? switchbackArm(plan, window) : i % 2;
      const e2e = (1_000_000 + 50_000 * random.next()) * (arm === 1 ? times : 1);
      const outcome: RolloutOutcome = {
        arm,
        window,
        counted: true,
        stretch: endAt - WINDOW_MICROS,
        slice: i,
        cluster: "",
        status: arm === 1 && i < 2 ? "failed" : "ok",
        times: { ttft: e2e / 2, tpot: 10_000, e2e },
        endpoint: "a",
        promptTokens: 10,
        cachedTokens: 0,
      };
      judge.arrived(window, endAt);
      judge.observe(outcome);
    }
    judge.advance(endAt);
  }
  return judge;
}

const lineOf = (plan: RolloutPlan, windows: number, times: number) =>
  verdictLine(after(plan, stepOf("start", 0)), judged(plan, windows, times), RULES_HERE, windows * WINDOW_MICROS);

test("what was surely found is a range in percent and milliseconds with what to do", () => {
  const slower = lineOf(planOf(SWITCHBACK), 12, 1.2);
  assert.match(
    slower.text,
    /^after 6 of 11 blocks: arm-1 is slower by 1\d to 2\d %, 1\d\d to 2\d\d ms, likely 20 % \(E2E mean(, p99 [^)]*)?, errors 5\.0 % against 0\.0 %\); roll back$/,
  );
  assert.deepEqual([slower.advice, slower.done, slower.planned, slower.unit], ["roll back", 6, 11, "blocks"]);
  const quicker = lineOf(planOf(SWITCHBACK), 12, 0.8);
  assert.match(quicker.text, /arm-1 is quicker by .* %, .*; promote$/);
  // The range holds the truth, and is of the control's figure.
  const [, low = "", high = ""] = /by (\d+) to (\d+) %/.exec(slower.text) ?? [];
  assert.ok(Number(low) <= 20 && Number(high) >= 20, slower.text);
});

test("a switchback without predictions states what it is slow to see, before anything is measured", () => {
  const plan = planOf(SWITCHBACK);
  const blind = /p99 twice as long may take four hours/;
  const lines = [after(plan), after(plan, stepOf("start", 0))].map((state) => (awaitsPredictions: boolean) => {
    const rules = { ...RULES_HERE, awaitsPredictions };
    return verdictLine(state, judged(plan, 0, 1), rules, 0).text;
  });
  for (const line of lines) {
    assert.match(line(false), blind);
    assert.doesNotMatch(line(true), blind);
  }
  assert.doesNotMatch(lineOf(planOf(BY_REQUEST), 0, 1).text, blind);
});

test("what is not known comes with what could be found now, and how long the rest takes", () => {
  const open = lineOf(planOf(SWITCHBACK), 12, 1);
  assert.match(
    open.text,
    /^after 6 of 11 blocks: not known yet whether arm-1 differs: could find [\d.]+ % now, errors .*; about 10 minutes more$/,
  );
  assert.equal(open.advice, "wait");
  const split = lineOf(planOf(BY_REQUEST), 4, 1);
  assert.match(split.text, /^after 160 requests: arm-1 is not found to differ: -[\d.]+ % to \+[\d.]+ % /);
});

test("nothing measured is no verdict, and whatever is shown has neither NaN nor Infinity in it", () => {
  assert.match(lineOf(planOf(BY_REQUEST), 0, 1).text, /^nothing is known: no request was measured$/);
  for (const design of DESIGNS)
    for (const windows of [0, 1, 2, 3, 40])
      for (const times of [0.5, 1, 3]) {
        const { text } = lineOf(planOf(design), windows, times);
        assert.ok(!/NaN|Infinity|undefined/.test(text), `${design.kind}: ${text}`);
      }
});

test("one that has ended has how, and why", () => {
  const plan = planOf(SWITCHBACK);
  const state = after(plan, stepOf("start", 0), stepOf("rollback", 5));
  assert.equal(verdictLine(state, judged(plan, 4, 1), RULES_HERE, 9).text, "rolled back after 2 of 11 blocks: test");
});

test("a difference of few standard errors is likely smaller than it looks, one of many hardly; never beyond its interval", () => {
  const found = (errors: number, low: number) => {
    const about = { arm: 1, metric: "e2e", figure: "mean", evidence: 99, varianceLeft: 1, level: 0.02 } as const;
    return shrunkMean({ ...about, count: 16, deviation: (4 * 240) / errors, mean: 240, low, high: 480 - low });
  };
  assert.ok(Math.abs(found(3.5, 10) - 200.8) < 0.1, `${found(3.5, 10)}`);
  assert.ok(Math.abs(found(10, 150) - 235.2) < 0.1);
  assert.equal(found(3.5, 235), 235);
  assert.equal(found(1, -240), 0);
  const none = { arm: 1, metric: "e2e", figure: "mean", evidence: 9, varianceLeft: 1, level: 0.02 } as const;
  assert.equal(shrunkMean({ ...none, count: 4, deviation: 0, mean: -240, low: -240, high: -240 }), -240);
});

test("the line names a design that cannot know, what a canary waits for, and why a comparison is worthless", () => {
  const at = 600_000_000;
  const lineOf = (design: Design, give: (judge: Judge) => void = () => undefined, stepSamplesMin?: number) => {
    const rules = { ...RULES, guardrails: [], ...(stepSamplesMin !== undefined && { stepSamplesMin }) };
    const judge = new Judge({ plan: planOf(design), ...rules });
    for (let window = 0; window < 8; window++) {
      for (let i = 0; i < 40; i++) {
        judge.arrived(window, (window + 1) * WINDOW_MICROS);
        judge.observe({
          arm: i % 2,
          window,
          counted: true,
          stretch: window,
          slice: i,
          cluster: `${window} ${i}`,
          status: "ok",
          times: { ttft: 100_000 + 1000 * (i % 7), tpot: 10_000, e2e: 500_000 + 9000 * (i % 11) },
          endpoint: "e",
          promptTokens: 1,
          cachedTokens: 0,
        });
      }
      judge.advance((window + 1) * WINDOW_MICROS);
    }
    give(judge);
    return verdictLine(after(planOf(design), stepOf("start", 0)), judge, rules, at).text;
  };
  const [pools, canary] = ["pools", "canary"].map((kind) => DESIGNS.find((one) => one.kind === kind)!);
  assert.match(lineOf(pools!), /cannot be known by this design: two pools are two values/);
  assert.match(
    lineOf({ ...canary!, stepPercents: [50, 100] } as Design),
    /holds before 100 %: slow-rate may be .* worse, 1 % allowed/,
  );
  const needs = (stepSamplesMin: number) =>
    lineOf({ ...canary!, stepPercents: [50, 100] } as Design, undefined, stepSamplesMin);
  assert.match(needs(161), /holds before 100 %: 160 of 161 requests of an arm/);
  assert.match(needs(160), /holds before 100 %: slow-rate may be .* worse/, "as many as it needs are enough");
  const dead = (judge: Judge) => {
    for (let i = 0; i < 30; i++) {
      judge.arrived(9, 10 * WINDOW_MICROS);
      judge.observe({ ...JUDGED, cluster: `9 ${i}` });
    }
    judge.advance(10 * WINDOW_MICROS);
  };
  assert.match(lineOf(pools!, dead), /not to be trusted: arm-1: it answered nothing while another arm answered 30/);
});

const JUDGED = {
  arm: 0,
  window: 9,
  counted: true,
  stretch: 9,
  slice: 0,
  status: "ok",
  times: { ttft: 1, tpot: 1, e2e: 1 },
  endpoint: "e",
  promptTokens: 1,
  cachedTokens: 0,
} as const;

test("by tenant the line has before traffic and after that few tenants find nothing, and of many what could be found", () => {
  const plan = planOf({ kind: "split", windowMicros: WINDOW_MICROS, by: "tenant" });
  const never = /nothing is found of fewer than 8 tenants of about one size an arm, however long it runs/;
  const lineOf = (requestsOf: (tenant: number) => number) => {
    const judge = new Judge({ plan, ...RULES_HERE });
    for (let tenant = 0; tenant < 30; tenant++) {
      for (let i = 0; i < requestsOf(tenant); i++) {
        judge.arrived(0, WINDOW_MICROS);
        const e2e = 500_000 + 9000 * ((tenant + i) % 11);
        judge.observe({
          ...JUDGED,
          arm: tenant % 2,
          window: 0,
          cluster: `t${tenant}`,
          times: { ttft: e2e / 2, tpot: 10_000, e2e },
        });
      }
    }
    judge.advance(Infinity);
    return verdictLine(after(plan, stepOf("start", 0)), judge, RULES_HERE, WINDOW_MICROS);
  };
  const before = verdictLine(after(plan), new Judge({ plan, ...RULES_HERE }), RULES_HERE, 0);
  assert.match(before.text, never);
  assert.match(lineOf(() => 0).text, never);
  const few = lineOf((tenant) => Math.ceil(200 / (tenant + 1))).text;
  assert.match(few, never);
  assert.match(few, /an arm's tenants say as much as [1-7] of one size/);
  assert.doesNotMatch(few, /more$/, "no time is promised");
  const many = lineOf(() => 20).text;
  assert.doesNotMatch(many, never);
  assert.match(many, /is not found to differ: -/);
});
