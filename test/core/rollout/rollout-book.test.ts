import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  bookAfter,
  EMPTY_BOOK,
  type RolloutBook,
  type BookInput,
  rolloutOf,
  ROLLOUTS_MAX,
} from "#core/rollout/rollout-book.ts";
import { planProblems, type RolloutPlan } from "#core/rollout/plan/rollout-plan.ts";
import { type StepKind, windowAt } from "#core/rollout/rollout-state.ts";
import { after, DESIGNS, plannedOf, planOf, RULES, stepOf, WINDOW_MICROS } from "./rollout-case.ts";

const PLAN = planOf(DESIGNS[0]!);
const named = (name: string, model: string): RolloutPlan => ({ ...PLAN, name, model });
const planned = (plan: RolloutPlan, at = 0): BookInput => plannedOf(plan, at);
const step = (rollout: string, kind: StepKind, at: number, arm = ""): BookInput => ({
  ...stepOf(kind, at, arm),
  rollout,
});

function bookOf(...inputs: readonly BookInput[]): RolloutBook {
  let book = EMPTY_BOOK;
  for (const input of inputs) {
    const next = bookAfter(book, input);
    if (typeof next === "string") assert.fail(next);
    book = next;
  }
  return book;
}

function refusal(next: RolloutBook | string): string {
  return typeof next === "string" ? next : assert.fail("it was accepted");
}

test("whatever is asked, no two rollouts of one model are under way, and a refusal changes nothing", () => {
  const name = fc.constantFrom("a", "b", "c", "all");
  const models: Readonly<Record<string, string>> = { a: "llama", b: "llama", c: "qwen", all: "" };
  const kind = fc.constantFrom<StepKind>("start", "pause", "resume", "advance", "promote", "rollback");
  const asked = fc.tuple(name, fc.oneof({ weight: 4, arbitrary: kind }, fc.constant("remove" as const)), fc.nat(400));
  fc.assert(
    fc.property(fc.array(asked, { maxLength: 60 }), (all) => {
      let book = bookOf(...Object.entries(models).map(([name, model]) => planned(named(name, model))));
      let at = 0;
      for (const [rollout, kind, seconds] of all) {
        at += seconds * 1_000_000;
        const before = JSON.stringify(book);
        const input: BookInput =
          kind === "remove" ? { kind: "rollout-removed", at, rollout } : step(rollout, kind, at, "arm-1");
        const next = bookAfter(book, input);
        assert.equal(JSON.stringify(book), before);
        if (typeof next === "string") continue;
        book = next;
        for (const model of ["llama", "qwen"]) {
          const underWay = book.filter(
            ({ plan, phase }) => (phase === "running" || phase === "paused") && ["", model].includes(plan.model),
          );
          assert.ok(underWay.length <= 1);
          if (underWay.length === 1) assert.equal(rolloutOf(book, model), underWay[0]);
        }
      }
    }),
  );
});

test("a second rollout of a model waits for the first, and after a rollback for its cooldown", () => {
  const book = bookOf(planned(named("a", "llama")), planned(named("b", "llama")), step("a", "start", 1));
  assert.match(refusal(bookAfter(book, step("b", "start", 2))), /a is running for model llama/);
  const back = bookOf(
    planned(named("a", "llama")),
    planned(named("b", "llama")),
    step("a", "start", 1),
    step("a", "rollback", 5),
  );
  assert.match(refusal(bookAfter(back, step("b", "start", 600_000_004))), /cooldown ends in 1 s/);
  assert.match(refusal(bookAfter(back, { kind: "rollout-removed", at: 6, rollout: "a" })), /until its cooldown ends/);
  assert.notEqual(typeof bookAfter(back, step("b", "start", 600_000_005)), "string");
});

test("once it has ended, the policy decides; another one under way decides before it", () => {
  const inputs = [planned(named("a", "llama")), step("a", "start", 1)];
  assert.equal(rolloutOf(bookOf(...inputs), "llama")?.plan.name, "a");
  assert.equal(rolloutOf(bookOf(...inputs), "qwen"), undefined);
  const ended = [...inputs, step("a", "promote", 2, "arm-1"), planned(named("b", "llama"))];
  assert.equal(rolloutOf(bookOf(...ended), "llama"), undefined);
  assert.equal(rolloutOf(bookOf(...ended, step("b", "start", 3)), "llama")?.plan.name, "b");
});

test("rules that cannot be and profiles that are not there are refused with their path", () => {
  const rules = { ...RULES, level: 1, guardrails: [{ figure: "ttft.p90" as const, samplesMin: 0 }] };
  const text = refusal(bookAfter(EMPTY_BOOK, plannedOf(PLAN, 0, rules)));
  assert.match(text, /rules\.level: expected a number between 0 and 1, got 1/);
  assert.match(text, /rules\.guardrails\[0\]: expected absoluteMax or relativeMax above 0/);
  assert.match(text, /rules\.guardrails\[0\]\.samplesMin: expected an integer of at least 1, got 0/);
  const without = refusal(bookAfter(EMPTY_BOOK, { ...plannedOf(PLAN), profiles: {} }));
  assert.match(without, /arms\[0\]\.profile: expected one of the rollout's profiles, got "profile-0"/);
});

test("a bad plan and a full book are refused with what is expected", () => {
  const bad = {
    ...PLAN,
    arms: [PLAN.arms[0]!, PLAN.arms[0]!],
    design: { ...DESIGNS[0]!, washoutMicros: WINDOW_MICROS },
  };
  const text = refusal(bookAfter(EMPTY_BOOK, planned(bad)));
  assert.match(text, /arms\[1\]\.name: expected a name of its own.*design\.washoutMicros: expected a duration below/);
  const full = bookOf(...Array.from({ length: ROLLOUTS_MAX }, (_, i) => planned(named(`r${i}`, `m${i}`))));
  assert.match(refusal(bookAfter(full, planned(named("more", "x")))), /at most 64 rollouts/);
  assert.match(refusal(bookAfter(full, step("gone", "start", 1))), /rollout "gone": expected r0, /);
});

test("plans of every design are accepted, and each of these is not", () => {
  for (const design of DESIGNS) assert.deepEqual(planProblems(planOf(design)), []);
  const canary = { kind: "canary", windowMicros: 1, by: "session" } as const;
  const wrong: readonly [RolloutPlan, RegExp][] = [
    [planOf({ ...canary, stepPercents: [5, 1] }), /stepPercents: expected rising/],
    [planOf({ ...canary, stepPercents: [] }), /stepPercents: expected 1 to/],
    [planOf({ ...canary, stepPercents: [50] }, 3), /a control and one other arm/],
    [planOf(DESIGNS[2]!, 1), /arms: expected 2 to 8/],
    [planOf({ kind: "shadow", windowMicros: 0 }), /windowMicros: expected a duration above 0/],
    [{ ...PLAN, design: DESIGNS[1]!, arms: PLAN.arms.map((arm) => ({ ...arm, pool: "same" })) }, /arms\[1\]\.pool/],
  ];
  for (const [plan, problem] of wrong) assert.match(planProblems(plan).join("; "), problem);
});

test("windows go on counting after a pause, a switchback's with a whole block", () => {
  for (const design of DESIGNS) {
    const at = 2 * WINDOW_MICROS + 5;
    const state = after(planOf(design), stepOf("start", 0), stepOf("pause", at), stepOf("resume", at + 99));
    assert.equal(windowAt(state, at + 99), design.kind === "switchback" ? 4 : 3);
    assert.equal(windowAt(state, at + 99 + WINDOW_MICROS), design.kind === "switchback" ? 5 : 4);
  }
});
