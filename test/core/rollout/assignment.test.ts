import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { assignmentOf, switchbackArm } from "#core/rollout/assignment.ts";
import type { RolloutState } from "#core/rollout/rollout-state.ts";
import { after, DESIGNS, planOf, requestOf, stepOf, WINDOW_MICROS } from "./rollout-case.ts";

const design = fc.constantFrom(...DESIGNS);
const at = fc.integer({ min: 0, max: 100 * WINDOW_MICROS });
const session = fc.integer({ min: 0, max: 200 });

test("every request has one arm, its profile and, with pools, its pool; the same from the saved state", () => {
  fc.assert(
    fc.property(design, at, session, fc.integer(), (design, at, session, number) => {
      const state = after(planOf(design), stepOf("start", 0));
      const restored = JSON.parse(JSON.stringify(state)) as RolloutState;
      const request = requestOf(number, `session-${session}`);
      const assignment = assignmentOf(request, at, state);
      const arm = state.plan.arms[assignment.arm];
      assert.equal(assignment.profile, arm?.profile);
      assert.equal(assignment.pool?.value, design.kind === "pools" ? arm?.pool : undefined);
      assert.equal(assignment.window, Math.floor(at / WINDOW_MICROS));
      assert.equal(assignment.windowEndAt, (assignment.window + 1) * WINDOW_MICROS);
      assert.deepEqual(assignmentOf(request, at, restored), assignment);
    }),
  );
});

test("a session stays on its arm within a window, whatever its requests and their times", () => {
  const bySession = DESIGNS.filter((one) => !("by" in one) || one.by === "session");
  fc.assert(
    fc.property(
      fc.constantFrom(...bySession),
      session,
      fc.nat(99),
      fc.array(fc.nat(WINDOW_MICROS - 1)),
      (design, session, window, times) => {
        const state = after(planOf(design), stepOf("start", 0));
        const arms = times.map(
          (time, i) => assignmentOf(requestOf(i, `session-${session}`), window * WINDOW_MICROS + time, state).arm,
        );
        assert.ok(new Set(arms).size <= 1);
      },
    ),
  );
});

test("a switchback has each arm once in each block of windows, and both orders about as often", () => {
  for (const arms of [2, 3]) {
    const plan = planOf(DESIGNS[0]!, arms);
    const orders = new Map<string, number>();
    const blocks = 6000;
    for (let block = 0; block < blocks; block++) {
      const order = Array.from({ length: arms }, (_, i) => switchbackArm(plan, block * arms + i));
      assert.deepEqual(
        [...order].sort((a, b) => a - b),
        Array.from({ length: arms }, (_, i) => i),
      );
      orders.set(order.join(" "), (orders.get(order.join(" ")) ?? 0) + 1);
    }
    const expected = blocks / (arms === 2 ? 2 : 6);
    assert.equal(orders.size, blocks / expected);
    // Five standard deviations of a count.
    for (const count of orders.values()) assert.ok(Math.abs(count - expected) < 5 * Math.sqrt(expected), `${count}`);
  }
});

test("a switchback's washout is routed by its arm and not counted", () => {
  const state = after(planOf(DESIGNS[0]!), stepOf("start", 0));
  const [early, late] = [9_999_999, 10_000_000].map((at) => assignmentOf(requestOf(1), at, state));
  assert.deepEqual([early?.counted, late?.counted], [false, true]);
  assert.equal(early?.arm, late?.arm);
});

test("keys are spread by shares, and another rollout spreads them otherwise", () => {
  const split = planOf({ kind: "split", windowMicros: WINDOW_MICROS, by: "session" }, 3);
  const states = [split, { ...split, name: "other" }].map((plan) =>
    after({ ...plan, name: "try" }, stepOf("start", 0)),
  );
  states[1] = { ...states[1]!, plan: { ...split, name: "other" } };
  const counts = [0, 0, 0];
  let same = 0;
  const sessions = 9000;
  for (let i = 0; i < sessions; i++) {
    const [one, other] = states.map((state) => assignmentOf(requestOf(i, `session-${i}`), 5, state).arm);
    counts[one!]!++;
    if (one === other) same++;
  }
  for (const count of [...counts, same])
    assert.ok(Math.abs(count - sessions / 3) < 5 * Math.sqrt(sessions / 3), `${count}`);
});

test("a canary's steps move sessions to the other arm, as many as its share allows, and never back", () => {
  const plan = planOf(DESIGNS.find(({ kind }) => kind === "canary")!);
  let state = after(plan, stepOf("start", 0));
  let before = new Set<number>();
  const sessions = 20_000;
  for (const [i, percent] of [1, 5, 25, 50, 100].entries()) {
    if (i > 0)
      state = after(plan, stepOf("start", 0), ...Array.from({ length: i }, (_, k) => stepOf("advance", k + 1)));
    const there = new Set<number>();
    for (let number = 0; number < sessions; number++) {
      if (assignmentOf(requestOf(number, `session-${number}`), 10, state).arm === 1) there.add(number);
    }
    assert.ok(before.isSubsetOf(there));
    const expected = (sessions * percent) / 100;
    assert.ok(Math.abs(there.size - expected) <= 5 * Math.sqrt(expected), `${percent} %: ${there.size}`);
    before = there;
  }
});

test("shadow routes by the control and names the arms that decide too", () => {
  const state = after(planOf({ kind: "shadow", windowMicros: WINDOW_MICROS }, 3), stepOf("start", 0));
  const { arm, shadowArms } = assignmentOf(requestOf(1), 5, state);
  assert.deepEqual([arm, shadowArms], [0, [1, 2]]);
});

test("outside of a run the control routes and nothing counts; a promoted arm has all traffic without a pool", () => {
  for (const design of DESIGNS) {
    const plan = planOf(design);
    const start = stepOf("start", 0);
    const states = [
      after(plan),
      after(plan, start, stepOf("pause", 5)),
      after(plan, start, stepOf("rollback", 5)),
      after(plan, start, stepOf("promote", 5, "arm-1")),
    ];
    const assignments = states.map((state) => assignmentOf(requestOf(3, "s"), 100, state));
    assert.deepEqual(
      assignments.map(({ profile, counted, window, pool }) => [profile, counted, window, pool]),
      ["profile-0", "profile-0", "profile-0", "profile-1"].map((profile) => [profile, false, -1, undefined]),
    );
  }
});

test("neighbouring seeds draw orders and places that agree as often as chance has it", () => {
  const split = DESIGNS.find((one) => one.kind === "split" && one.by === "session")!;
  const orderOf = (seed: number) => {
    const plan = planOf(DESIGNS[0]!, 2, seed);
    return Array.from({ length: 64 }, (_, block) => switchbackArm(plan, 2 * block));
  };
  const placesOf = (seed: number) => {
    const state = after(planOf(split, 2, seed), stepOf("start", 0));
    return Array.from({ length: 64 }, (_, i) => assignmentOf(requestOf(i, `session-${i}`), 5, state).arm);
  };
  for (const drawn of [orderOf, placesOf]) {
    const all = Array.from({ length: 201 }, (_, seed) => drawn(seed));
    const agreements = all.slice(1).map((one, i) => one.filter((arm, j) => arm === all[i]![j]).length / 64);
    const mean = agreements.reduce((sum, one) => sum + one, 0) / 200;
    const variance = agreements.reduce((sum, one) => sum + (one - mean) ** 2, 0) / 200;
    // Of 64 throws of a coin: a half, with a variance of 1 / 256.
    assert.ok(Math.abs(mean - 0.5) < 5 / 16 / Math.sqrt(200), `${mean}`);
    assert.ok(variance < 2 / 256, `${variance}`);
  }
});

test("pools that are redrawn keep a key on its arm within a window, and draw it anew for the next", () => {
  const design = { kind: "pools", windowMicros: WINDOW_MICROS, by: "session", label: "pool", redrawn: true } as const;
  const state = after(planOf(design), stepOf("start", 0));
  const armIn = (window: number, session: number, share: number) =>
    assignmentOf(requestOf(session, `s${session}`), Math.floor((window + share) * WINDOW_MICROS), state).arm;
  let [moved, onOther] = [0, 0];
  for (let session = 0; session < 400; session++) {
    assert.equal(armIn(3, session, 0.9), armIn(3, session, 0.1));
    if (armIn(4, session, 0) !== armIn(3, session, 0)) moved++;
    onOther += armIn(4, session, 0);
  }
  for (const count of [moved, onOther]) assert.ok(count > 150 && count < 250, String(count));
});
