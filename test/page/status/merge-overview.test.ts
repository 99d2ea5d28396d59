import assert from "node:assert/strict";
import { test } from "node:test";
import { DECISIONS_SHOWN, lastSequence, lastSlot, mergeOverview } from "#page/status/merge-overview.ts";
import { EMPTY_PAGE } from "#page/status/page-state.ts";
import { decisionCase, overviewCase } from "./overview-case.ts";

const OVERVIEW = overviewCase();
const FIRST = mergeOverview(EMPTY_PAGE, OVERVIEW, 1);

test("nothing is known at first, and then all but the slot that is still being filled", () => {
  assert.deepEqual([lastSequence(EMPTY_PAGE), lastSlot(EMPTY_PAGE)], [-1, -1]);
  assert.equal(lastSequence(FIRST), 1_000);
  assert.equal(lastSlot(FIRST), OVERVIEW.traffic.slots.at(-2)?.slot);
  assert.deepEqual(FIRST.connection, { kind: "live", at: 1 });
});

test("slots that come again take the place of those known, and no more are kept than the gateway keeps", () => {
  const [last] = OVERVIEW.traffic.slots.slice(-1);
  const again = { ...last!, requests: 7 };
  const next = { ...last!, slot: last!.slot + 1 };
  const second = mergeOverview(FIRST, { ...OVERVIEW, traffic: { ...OVERVIEW.traffic, slots: [again, next] } }, 2);
  assert.equal(second.slots.length, OVERVIEW.traffic.slotsMax);
  assert.deepEqual(second.slots.slice(-2), [again, next]);
});

test("decisions are added in front, bounded, and those that go are closed", () => {
  const open = { ...FIRST, openDecisions: new Map([[1_000, "detail"]]) };
  const few = Array.from({ length: 5 }, (_, i) => decisionCase(1_005 - i));
  const second = mergeOverview(open, { ...OVERVIEW, decisions: few }, 2);
  assert.deepEqual(
    second.decisions.slice(0, 6).map(({ sequence }) => sequence),
    [1_005, 1_004, 1_003, 1_002, 1_001, 1_000],
  );
  assert.ok(second.openDecisions.has(1_000));
  const many = Array.from({ length: DECISIONS_SHOWN }, (_, i) => decisionCase(2_000 - i));
  const third = mergeOverview(second, { ...OVERVIEW, decisions: many }, 3);
  assert.deepEqual([third.decisions.length, third.openDecisions.size], [DECISIONS_SHOWN, 0]);
});

test("what comes of a decision later is asked for again, and takes its place, held or not", () => {
  const going = { came: "", isOver: false };
  const decisions = [decisionCase(1_003), decisionCase(1_002, going), decisionCase(1_001)];
  const second = mergeOverview(FIRST, { ...OVERVIEW, decisions }, 2);
  assert.equal(lastSequence(second), 1_001);
  const came = { came: "no token, refused by the engine after 3.0 ms", isOver: true };
  const answer = { ...OVERVIEW, decisions: [decisionCase(1_004), decisionCase(1_003), decisionCase(1_002, came)] };
  for (const [held, newest] of [
    [false, 1_004],
    [true, 1_003],
  ] as const) {
    const third = mergeOverview({ ...second, held }, answer, 3);
    assert.equal(lastSequence(third), newest);
    assert.equal(third.decisions.find(({ sequence }) => sequence === 1_002)?.came, came.came);
  }
});

test("another process of the gateway starts afresh, held or not: its sequences and slots are others", () => {
  const restarted = { ...OVERVIEW, gateway: { ...OVERVIEW.gateway, startedAt: 5 }, decisions: [decisionCase(0)] };
  const second = mergeOverview({ ...FIRST, held: true }, restarted, 2);
  assert.deepEqual(
    second.decisions.map(({ sequence }) => sequence),
    [0],
  );
});
