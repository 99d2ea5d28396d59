import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { PATH_RULES } from "#core/path/path-rules.ts";
import {
  faultOfLeaving,
  type Taker,
  type TakerKind,
  takerOf,
  type Trouble,
  troubleSince,
  type QuietAttempt,
  waitVerdict,
} from "#core/path/wait-verdict.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";

const SECOND = MICROS_PER_SECOND;
const LIMITS = PATH_RULES.waits;
const HUNG: Trouble = { kind: "hung", since: 0 };
const LOST: Trouble = { kind: "lost", since: 0 };

const waiting = (of: Partial<QuietAttempt>): QuietAttempt => ({
  at: 20 * SECOND,
  arrivedAt: 0,
  deadlineAt: Infinity,
  quietMicros: 20 * SECOND,
  begun: false,
  continues: false,
  resuming: false,
  movedTimes: 0,
  held: false,
  streams: true,
  blocked: false,
  trouble: undefined,
  isLate: false,
  ...of,
});
const verdict = (of: Partial<QuietAttempt>, taker: Taker = "free") => waitVerdict(waiting(of), LIMITS, () => taker);

test("an endpoint in trouble is left by who has no byte, and by who has one and gets no more, for an endpoint that may serve", () => {
  assert.equal(verdict({}), "wait", "no trouble");
  assert.equal(verdict({ trouble: HUNG }), "move");
  assert.equal(verdict({ trouble: LOST }), "move");
  assert.equal(verdict({ trouble: HUNG }, "nobody"), "wait", "a hung one may still answer");
  assert.equal(verdict({ trouble: LOST }, "nobody"), "give-up");
  assert.equal(verdict({ trouble: { kind: "lost", since: 16 * SECOND } }, "nobody"), "wait", "it was lost just now");
  const { cutMicrosMax, continueMicrosMax } = LIMITS;
  const ends = { trouble: HUNG, begun: true };
  assert.equal(verdict({ ...ends, quietMicros: cutMicrosMax + 1 }), "cut", "its client does better to ask again");
  assert.equal(verdict({ ...ends, quietMicros: cutMicrosMax }), "wait");
  assert.equal(verdict({ ...ends, quietMicros: cutMicrosMax + 1, blocked: true }), "wait", "its client does not read");
  const goesOn = { ...ends, continues: true };
  assert.equal(verdict({ ...goesOn, quietMicros: continueMicrosMax + 1 }), "cut");
  assert.equal(verdict({ ...goesOn, quietMicros: continueMicrosMax }), "wait");
  assert.equal(verdict({ ...goesOn, quietMicros: cutMicrosMax }, "barred"), "wait", "it cannot go on elsewhere");
  assert.equal(verdict({ ...goesOn, quietMicros: cutMicrosMax + 1 }, "barred"), "cut");
});

test("an endpoint that is drained is left at once by what can go on elsewhere, and by nothing else", () => {
  const evicted: Trouble = { kind: "evicted", since: 20 * SECOND };
  assert.equal(verdict({ trouble: evicted }), "move");
  assert.equal(verdict({ trouble: evicted }, "nobody"), "wait");
  assert.equal(verdict({ trouble: evicted, begun: true, quietMicros: 0 }), "wait", "it cannot go on elsewhere");
  assert.equal(verdict({ trouble: evicted, begun: true, continues: true, quietMicros: 0 }), "cut");
  assert.equal(verdict({ trouble: evicted, begun: true, continues: true, quietMicros: 0 }, "nobody"), "wait");
});

test("a draining endpoint is left by what is silent there and can go on elsewhere", () => {
  const draining: Trouble = { kind: "draining", since: 0 };
  const { continueMicrosMax } = LIMITS;
  const begun = { trouble: draining, begun: true, continues: true };
  assert.equal(verdict({ ...begun, quietMicros: continueMicrosMax }), "wait", "it ends what it makes");
  assert.equal(verdict({ ...begun, quietMicros: continueMicrosMax + 1 }), "cut");
  assert.equal(verdict({ ...begun, continues: false }), "wait");
  assert.equal(verdict(begun, "barred"), "wait");
  assert.equal(verdict({ trouble: draining, quietMicros: continueMicrosMax + 1 }), "move");
  assert.equal(verdict({ trouble: draining, quietMicros: continueMicrosMax }), "wait");
});

test("limits hold to the microsecond, each for what it is about", () => {
  const { totalMicrosMax, firstByteMicrosMax, idleMicrosMax, writeStallMicrosMax } = LIMITS;
  assert.equal(verdict({ at: firstByteMicrosMax }), "wait");
  assert.equal(verdict({ at: firstByteMicrosMax + 1 }), "time-out");
  assert.equal(verdict({ at: firstByteMicrosMax + 1, streams: false }), "wait");
  assert.equal(verdict({ at: totalMicrosMax, streams: false }), "wait");
  assert.equal(verdict({ at: totalMicrosMax + 1, streams: false }), "time-out");
  for (const begun of [false, true]) {
    assert.equal(verdict({ begun, quietMicros: 0, deadlineAt: 20 * SECOND }), "wait");
    assert.equal(verdict({ begun, quietMicros: 0, deadlineAt: 20 * SECOND - 1 }), "time-out");
  }
  const resuming = { resuming: true, at: 3 * firstByteMicrosMax };
  assert.equal(
    verdict({ ...resuming, quietMicros: firstByteMicrosMax }),
    "wait",
    "it waits as a first byte is waited for",
  );
  assert.equal(verdict({ ...resuming, quietMicros: firstByteMicrosMax + 1 }), "time-out");
  const goesOn = { begun: true, continues: true, quietMicros: idleMicrosMax + 1 };
  assert.equal(verdict(goesOn), "cut", "another endpoint takes it over");
  assert.equal(verdict(goesOn, "barred"), "time-out");
  for (const one of [{ begun: true }, { held: true }]) {
    assert.equal(verdict({ ...one, quietMicros: idleMicrosMax }), "wait");
    assert.equal(verdict({ ...one, quietMicros: idleMicrosMax + 1 }), "time-out");
  }
  assert.equal(verdict({ blocked: true, begun: true, quietMicros: writeStallMicrosMax }), "wait");
  assert.equal(verdict({ blocked: true, begun: true, quietMicros: writeStallMicrosMax + 1 }), "stalled");
});

const DRAWN = fc.record({
  at: fc.integer({ min: 0, max: 2 * LIMITS.totalMicrosMax }),
  arrivedAt: fc.constant(0),
  deadlineAt: fc.constantFrom(Infinity, 90 * SECOND, LIMITS.totalMicrosMax),
  quietMicros: fc.oneof(
    fc.integer({ min: 0, max: 2 * LIMITS.idleMicrosMax }),
    fc.integer({ min: 0, max: 2 * LIMITS.cutMicrosMax }),
  ),
  begun: fc.boolean(),
  continues: fc.boolean(),
  resuming: fc.constant(false),
  movedTimes: fc.integer({ min: 0, max: 8 }),
  held: fc.boolean(),
  streams: fc.boolean(),
  blocked: fc.boolean(),
  trouble: fc.constantFrom(undefined, HUNG, LOST),
  isLate: fc.boolean(),
});
const TAKER = fc.constantFrom<Taker>("nobody", "barred", "free");

test("whatever the state, a begun answer never moves, and nobody moves where there is no taker", () => {
  fc.assert(
    fc.property(DRAWN, TAKER, (one, taker) => {
      const said = waitVerdict(one, LIMITS, () => taker);
      if (one.begun || taker !== "free") assert.notEqual(said, "move");
      if (one.trouble === undefined && one.movedTimes === 0) assert.notEqual(said, "move");
      if (one.begun) assert.notEqual(said, "give-up");
      if (said === "cut") assert.ok(one.begun && !one.blocked);
      if (said === "cut" && one.trouble === undefined) assert.ok(one.continues && taker === "free");
    }),
  );
});

test("an answer that began ends before its limits only for an endpoint that may serve; where one takes it, silence is bounded", () => {
  const { totalMicrosMax, idleMicrosMax, writeStallMicrosMax, continueMicrosMax, cutMicrosMax } = LIMITS;
  fc.assert(
    fc.property(DRAWN, TAKER, (drawn, taker) => {
      const one = { ...drawn, begun: true };
      const said = waitVerdict(one, LIMITS, () => taker);
      const isOver = one.at > totalMicrosMax || one.at > one.deadlineAt;
      const isWithin = !isOver && one.quietMicros <= (one.blocked ? writeStallMicrosMax : idleMicrosMax);
      if (isWithin && taker === "nobody") assert.equal(said, "wait");
      if (one.trouble === undefined || one.blocked || isOver) return;
      const bound = one.continues && taker === "free" ? continueMicrosMax : cutMicrosMax;
      if (taker !== "nobody" && one.quietMicros > bound) assert.equal(said, "cut");
    }),
  );
});

test("what a fault brought to a busy endpoint moves again to an idle one, each time later, and what came by itself stays", () => {
  const { moveAgainMicros } = LIMITS;
  for (const resuming of [false, true])
    for (const movedTimes of [1, 2, 5]) {
      const one = { resuming, movedTimes };
      const due = moveAgainMicros * 2 ** (movedTimes - 1);
      assert.equal(verdict({ ...one, quietMicros: due }), "wait");
      assert.equal(verdict({ ...one, quietMicros: due + 1 }), "move");
      const asked: TakerKind[] = [];
      waitVerdict(waiting({ ...one, quietMicros: due + 1 }), LIMITS, (kind) => (asked.push(kind), "nobody"));
      assert.deepEqual(asked, ["idle"]);
    }
  assert.equal(verdict({ movedTimes: 0, quietMicros: 400 * SECOND, at: 400 * SECOND }), "wait");
  assert.equal(faultOfLeaving("move", undefined), "saturated", "it speaks for a full endpoint, not against it");
  assert.equal(faultOfLeaving("move", LOST), "connect");
});

test("who could serve a request, and whether it may go there", () => {
  assert.deepEqual(
    [takerOf(undefined, () => true), takerOf("budget", () => true), takerOf(undefined, () => false)],
    ["free", "barred", "nobody"],
  );
});

test("trouble is known since it was first found, until it is another", () => {
  const first = troubleSince(undefined, "hung", 5);
  assert.deepEqual(first, { kind: "hung", since: 5 });
  assert.equal(troubleSince(first, "hung", 9), first);
  assert.deepEqual(troubleSince(first, "lost", 9), { kind: "lost", since: 9 });
  assert.equal(troubleSince(first, undefined, 9), undefined);
});

test("a late first token gets the help of a stage where the first endpoint is well", () => {
  const late = (of: Partial<QuietAttempt>) => waitVerdict(waiting({ isLate: true, ...of }), LIMITS, () => "nobody");
  assert.equal(late({}), "help");
  assert.equal(verdict({}), "wait", "never, by default");
  assert.equal(late({ isLate: false }), "wait", "not yet, or one was asked, or it does not stream");
  assert.equal(late({ begun: true }), "wait", "its answer began");
  assert.equal(late({ held: true }), "wait", "its answer is on the way");
  assert.equal(late({ trouble: HUNG }), "wait", "where nobody may take it, nobody is asked");
  assert.equal(late({ deadlineAt: 0 }), "time-out");
});
