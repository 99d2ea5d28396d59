import assert from "node:assert/strict";
import { test } from "node:test";
import type { Routed } from "#core/input/decision.ts";
import type { Outcome } from "#core/endpoint/outcome.ts";
import type { Input } from "#core/input/input.ts";
import type { RouteRequest } from "#core/request/request.ts";
import { Judge, type SavedJudge } from "#core/rollout/judge/judge.ts";
import type { Design } from "#core/rollout/plan/rollout-plan.ts";
import { plannedRollout, type RolloutStep, steppedRollout } from "#core/rollout/rollout-state.ts";
import { RolloutWatch } from "#core/rollout-watch.ts";
import { DESIGNS, planOf, requestOf, RULES, stepOf, WINDOW_MICROS } from "./rollout/rollout-case.ts";

/** Of what counts as one: a quarter of a second. */
const TENTH = 25_000;
const SPLIT = planOf({ kind: "split", windowMicros: WINDOW_MICROS, by: "request" });

function watchOf(plan = SPLIT): { watch: RolloutWatch; judge: Judge; take: (step: RolloutStep) => void } {
  const judge = new Judge({ plan, ...RULES });
  const watch = new RolloutWatch(plannedRollout(plan, 0), judge);
  const take = (step: RolloutStep): void => {
    const next = steppedRollout(watch.state, step);
    if (typeof next === "string") assert.fail(next);
    watch.move(next);
  };
  return { watch, judge, take };
}

function routed(requestId: string, at: number, endpoint: string): Routed {
  return { ...({ kind: "routed", at, requestId, endpoint } as Routed) };
}

/** One request from its arrival to its end, 30 ms to the first token and 10 for each of ten more, of each answer. */
function pass(
  watch: RolloutWatch,
  number: number,
  at: number,
  outcome: Outcome,
  more: Partial<RouteRequest> = {},
): void {
  const request = { ...requestOf(number), ...more };
  watch.assign(request, at);
  const arrived: Input = { kind: "request-arrived", at, request };
  watch.observe(arrived, routed(request.id, at, `engine-${number % 2}`));
  const requestId = request.id;
  if (outcome === "ok") watch.observe({ kind: "first-token", at: at + 30_000, requestId }, undefined);
  const end = { kind: "request-finished", at: at + 130_000, requestId, outcome, promptTokens: 100 } as const;
  watch.observe({ ...end, cachedTokens: 40, outputTokens: 11 * request.sequences }, undefined);
}

test("of the requests that are promised times each arm's goodput is counted, and kept over a restart", () => {
  const { watch, judge, take } = watchOf();
  take(stepOf("start", 1));
  for (let number = 0; number < 120; number++) {
    // 30 ms to the first token.
    const ttftMicros = number % 3 === 0 ? 20_000 : 30_000;
    const promised = number % 2 === 0 ? { slo: { ttftMicros } } : {};
    pass(watch, number, 10 + number, "ok", promised);
  }
  for (const { counts, goodput } of judge.totals) assert.ok(Math.abs(goodput - counts.met / counts.promised) < 1e-9);
  const sum = (of: "promised" | "met") => judge.totals.reduce((all, { counts }) => all + counts[of], 0);
  assert.deepEqual([sum("promised"), sum("met")], [60, 40]);
  const again = new Judge({ plan: SPLIT, ...RULES }, JSON.parse(JSON.stringify(judge.saved())) as SavedJudge);
  assert.deepEqual(
    again.totals.map(({ goodput }) => goodput),
    judge.totals.map(({ goodput }) => goodput),
  );
});

test("the router's inputs become each arm's figures; what is not counted does not", () => {
  const { watch, judge, take } = watchOf();
  pass(watch, 0, 0, "ok");
  assert.equal(judge.totals[0]!.counts.requests, 0);
  take(stepOf("start", 1));
  for (let number = 0; number < 200; number++)
    pass(watch, number, 10 + number, number % 4 === 0 ? "aborted" : "ok", { sequences: 1 + (number % 2) });
  const counts = judge.totals.map(({ counts }) => counts.requests);
  assert.equal(counts[0]! + counts[1]!, 200);
  for (const tally of judge.totals) {
    assert.deepEqual(
      [tally.time("ttft", "mean"), tally.time("tpot", "mean"), tally.time("e2e", "mean")],
      [30_000, 10_000, 130_000],
    );
    assert.equal(tally.hitRatio, 0.4);
    assert.equal(tally.errorRate, 0);
  }
  assert.equal(watch.look(WINDOW_MICROS), undefined);
});

test("answers that break take the rollout back, and the control routes from then on", () => {
  const { watch, take } = watchOf();
  take(stepOf("start", 0));
  // Requests of a quarter of a second are alike, and six of them may fail by chance where half may.
  for (let number = 0; number < 60; number++) pass(watch, number, number * TENTH, "failed");
  assert.equal(watch.look(60 * TENTH), undefined);
  for (let number = 60; number < 200; number++) pass(watch, number, number * TENTH, "failed");
  const step = watch.look(200 * TENTH);
  assert.equal(step?.step, "rollback");
  assert.equal(step.by, "judge");
  take(step);
  assert.equal(watch.state.phase, "rolled-back");
  const profiles = Array.from(
    { length: 50 },
    (_, number) => watch.assign(requestOf(1000 + number), 210 * TENTH).profile,
  );
  assert.deepEqual(new Set(profiles), new Set(["profile-0"]));
  assert.equal(watch.look(220 * TENTH), undefined);
  const refused = steppedRollout(watch.state, stepOf("resume", 220 * TENTH));
  assert.match(typeof refused === "string" ? refused : "", /resume expects it paused, and it is rolled-back$/);
  const planned = steppedRollout({ ...watch.state, phase: "planned" }, stepOf("rollback", 220 * TENTH));
  assert.match(
    typeof planned === "string" ? planned : "",
    /and it is planned; `rollout remove` takes away a planned one$/,
  );
});

test("a canary steps on what was shown alone, and its next step begins a comparison of its own", () => {
  const canary = DESIGNS.find(({ kind }) => kind === "canary")!;
  const { watch, judge, take } = watchOf(planOf({ ...canary, stepPercents: [25, 50, 100] } as Design));
  take(stepOf("start", 0));
  assert.equal(watch.look(WINDOW_MICROS), undefined, "nothing has been shown");
  for (let number = 0; number < 4_000; number++) pass(watch, number, number, "ok");
  assert.equal(watch.look(WINDOW_MICROS - 1), undefined, "a step has its least time");
  assert.ok(judge.difference(1, "ttft", "mean").count > 3_900);
  const step = watch.look(WINDOW_MICROS);
  assert.equal(step?.step, "advance");
  take(step);
  assert.equal(watch.state.canaryStep, 1);
  assert.equal(judge.difference(1, "ttft", "mean").count, 0);
});

test("a guardrail with a time to hold is crossed once it has been at every look for as long, and not by a hiccup", () => {
  const rules = {
    ...RULES,
    guardrails: [{ figure: "error-rate" as const, absoluteMax: 0.5, samplesMin: 3, holdMicros: 10 * TENTH }],
  };
  const watch = new RolloutWatch(plannedRollout(SPLIT, 0), new Judge({ plan: SPLIT, ...rules }));
  const started = steppedRollout(watch.state, stepOf("start", 0));
  assert.ok(typeof started !== "string");
  watch.move(started);
  const passAll = (from: number, until: number, outcome: Outcome) => {
    for (let number = from; number < until; number++) pass(watch, number, number * TENTH, outcome);
  };
  passAll(0, 120, "failed");
  assert.equal(watch.look(120 * TENTH), undefined);
  passAll(120, 220, "ok");
  assert.equal(watch.look(220 * TENTH), undefined);
  passAll(220, 470, "failed");
  assert.equal(watch.look(470 * TENTH), undefined);
  assert.equal(watch.look(480 * TENTH - 1), undefined);
  assert.equal(watch.look(480 * TENTH)?.step, "rollback");
});
