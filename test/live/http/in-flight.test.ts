import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { InFlight, type Swept } from "#live/http/in-flight.ts";

interface Rig {
  readonly inFlight: InFlight;
  /** What the listener was given, in order. */
  readonly news: string[];
  /** Sweeps of each member, and how many there were in each turn of the event loop. */
  readonly counts: Map<Swept, number>;
  readonly turns: number[];
  readonly add: (onSweep?: () => void) => Swept;
  /** Lets the interval pass, which begins a sweep. */
  readonly tick: () => void;
  /** One turn of the event loop; false where nothing was left to do. */
  readonly turn: () => boolean;
}

const EVERY_MILLIS = 250;

/** On a timer and with turns of the loop that the test has in its hand. */
function rigOf(t: TestContext): Rig {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const due: (() => void)[] = [];
  t.mock.method(globalThis, "setImmediate", (run: () => void) => {
    due.push(run);
    return { unref: () => run };
  });
  t.mock.method(globalThis, "clearImmediate", (run: (() => void) | undefined) => {
    const at = run === undefined ? -1 : due.indexOf(run);
    if (at >= 0) due.splice(at, 1);
  });
  const [news, turns]: [string[], number[]] = [[], []];
  const counts = new Map<Swept, number>();
  const inFlight = new InFlight(EVERY_MILLIS, {
    sweepBegins: () => void news.push("begins"),
    sweepEnds: () => void news.push("ends"),
  });
  return {
    inFlight,
    news,
    counts,
    turns,
    add(onSweep) {
      const member: Swept = {
        slot: -1,
        sweep: () => {
          counts.set(member, (counts.get(member) ?? 0) + 1);
          turns[turns.length - 1] = turns.at(-1)! + 1;
          onSweep?.();
        },
        answersOn: () => false,
      };
      inFlight.add(member);
      return member;
    },
    tick() {
      turns.push(0);
      t.mock.timers.tick(EVERY_MILLIS);
    },
    turn() {
      const run = due.shift();
      if (run === undefined) return false;
      turns.push(0);
      run();
      return true;
    },
  };
}

test("a sweep over many leaves the event loop to others between its parts, and looks at each once", (t) => {
  const { add, tick, turn, counts, news, turns } = rigOf(t);
  for (let i = 0; i < 1_000; i++) add();
  tick();
  assert.deepEqual(news, ["begins"]);
  while (turn());
  assert.deepEqual(news, ["begins", "ends"]);
  assert.deepEqual(new Set(counts.values()), new Set([1]));
  assert.equal(counts.size, 1_000);
  assert.ok(Math.max(...turns) <= 64, `${Math.max(...turns)} in one turn`);
});

test("few are looked at in one turn", (t) => {
  const { add, tick, turn, news, counts } = rigOf(t);
  for (let i = 0; i < 64; i++) add();
  tick();
  assert.deepEqual(news, ["begins", "ends"]);
  assert.equal(counts.size, 64);
  assert.equal(turn(), false);
});

test("whoever is in flight throughout a sweep is looked at, whoever else comes and goes between its parts", (t) => {
  const { inFlight, add, tick, turn, counts, news } = rigOf(t);
  const members = Array.from({ length: 700 }, () => add());
  const left = new Set<Swept>();
  const leave = (member: Swept): void => {
    if (left.has(member)) return;
    left.add(member);
    inFlight.remove(member);
  };
  tick();
  for (let at = 0; turn(); at++) {
    // From everywhere in the list: looked at already, still to be looked at, and the last ones.
    for (const place of [at * 7, 699 - at * 11, 350 + at * 3]) leave(members[place % 700]!);
    add();
  }
  const forgotten = members.filter((member) => !left.has(member) && !counts.has(member));
  assert.deepEqual(forgotten, []);
  assert.ok(left.size > 20);
  assert.deepEqual(news, ["begins", "ends"]);
});

test("members that end as they are looked at leave none out", (t) => {
  const { inFlight, add, tick, turn, counts, news } = rigOf(t);
  const members: Swept[] = [];
  for (let i = 0; i < 300; i++) members.push(add(() => i % 2 === 0 && inFlight.remove(members[i]!)));
  tick();
  while (turn());
  assert.equal(counts.size, 300);
  assert.equal(inFlight.size, 150);
  assert.deepEqual(news, ["begins", "ends"]);
});

test("a sweep that lasts longer than the time to the next goes on, and none begins beside it", (t) => {
  const { add, tick, turn, news } = rigOf(t);
  for (let i = 0; i < 200; i++) add();
  tick();
  turn();
  tick();
  assert.deepEqual(news, ["begins"]);
  while (turn());
  assert.deepEqual(news, ["begins", "ends"]);
  tick();
  assert.deepEqual(news, ["begins", "ends", "begins"]);
});

test("a sweep under way is over once the gateway stops, and the next begins anew", (t) => {
  const { inFlight, add, tick, turn, news, counts } = rigOf(t);
  for (let i = 0; i < 200; i++) add();
  tick();
  inFlight.stop();
  assert.equal(turn(), false);
  assert.deepEqual(news, ["begins"]);
  const last = add();
  tick();
  while (turn());
  assert.deepEqual(news, ["begins", "begins", "ends"]);
  assert.equal(counts.get(last), 1);
});
