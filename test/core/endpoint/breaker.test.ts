import assert from "node:assert/strict";
import { test } from "node:test";
import { BREAKER_DEFAULTS, Breaker, type BreakerChange } from "#core/endpoint/breaker.ts";
import { randomFor } from "#core/base/random.ts";
import { drawnSeeds } from "../../drawn-seeds.ts";

/** Each pause is as long as stated. */
const EXACT = { ...BREAKER_DEFAULTS, jitterShare: 0 };
const { failuresMax, pauseMicros, pauseMicrosMax, saturatedPauseMicros, drainingPauseMicros } = EXACT;

function opened(at = 0): Breaker {
  const breaker = new Breaker(EXACT);
  for (let i = 0; i < failuresMax; i++) breaker.failed(at, "connect", at);
  return breaker;
}

test("opens after the failures in a row that its options name, and a success in between starts the count anew", () => {
  const breaker = new Breaker(EXACT);
  for (let i = 1; i < failuresMax; i++) breaker.failed(0, "status", 0);
  breaker.succeeded(0);
  for (let i = 1; i < failuresMax; i++) breaker.failed(0, "status", 0);
  assert.equal(breaker.state(0), "closed");
  breaker.failed(0, "status", 0);
  assert.equal(breaker.state(0), "open");
});

test("after its pause one request may try; its success closes, its failure doubles the pause up to the longest", () => {
  const breaker = opened();
  let at = 0;
  let pause = pauseMicros;
  for (let probe = 0; probe < 8; probe++) {
    assert.equal(breaker.allows(at + pause - 1), false);
    at += pause;
    assert.equal(breaker.state(at), "half-open");
    assert.ok(breaker.allows(at));
    breaker.sent(at);
    assert.equal(breaker.allows(at), false, "one probe at a time");
    breaker.failed(at, "connect", at);
    pause = Math.min(pause * 2, pauseMicrosMax);
  }
  at += pause;
  breaker.sent(at);
  breaker.succeeded(at);
  assert.equal(breaker.state(at), "closed");
});

test("half-open, its room follows the answers: twice as many more requests with each first token, long before one is whole", () => {
  const breaker = opened();
  const at = pauseMicros;
  const room = (): number => {
    let sent = 0;
    for (; sent < 100 && breaker.allows(at + sent); sent++) breaker.sent(at + sent);
    return sent;
  };
  assert.equal(room(), 1);
  breaker.answered(0);
  assert.equal(room(), 0, "a request sent before it opened says nothing");
  breaker.answered(at);
  assert.equal(room(), 2);
  breaker.answered(at + 1);
  assert.equal(room(), 4);
  breaker.undecided(at);
  assert.equal(room(), 1, "one left");
  breaker.failed(at + 9, "cut", at + 1);
  assert.equal(breaker.state(at + 9), "open");
  breaker.answered(at);
  breaker.failed(at + 10, "cut", at);
  const again = at + 9 + 2 * pauseMicros;
  assert.equal(breaker.state(again - 1), "open", "one failure of them, however many were under way, doubles it once");
  assert.equal(breaker.state(again), "half-open");
  breaker.sent(again);
  assert.equal(breaker.allows(again), false, "and it begins with one again");
});

test("draining opens at once; saturated pauses briefly and never counts as failure", () => {
  const draining = new Breaker(EXACT);
  draining.failed(5, "draining", 0);
  assert.equal(draining.state(5), "open");
  const full = new Breaker(EXACT);
  for (let i = 0; i < 50; i++) full.failed(i, "saturated", i);
  assert.equal(full.state(49), "open");
  assert.equal(full.state(49 + saturatedPauseMicros), "closed");
});

test("a probe whose client left counts for nothing, and the next request may probe", () => {
  const breaker = opened();
  breaker.sent(pauseMicros);
  breaker.undecided(pauseMicros);
  assert.ok(breaker.allows(pauseMicros));
});

test("late failures of requests sent before it opened neither prolong nor double the pause", () => {
  const breaker = opened();
  for (let i = 1; i < 10; i++) breaker.failed(i * 1000, "connect", 0);
  assert.equal(breaker.state(pauseMicros), "half-open");
});

test("an engine that drains ends what it has: successes of requests sent before it opened do not close it", () => {
  const breaker = new Breaker(EXACT);
  breaker.failed(100, "draining", 90);
  breaker.succeeded(50);
  assert.equal(breaker.state(100), "open");
  const probedAt = 100 + drainingPauseMicros;
  assert.equal(breaker.state(probedAt - 1), "open");
  breaker.sent(probedAt);
  breaker.succeeded(60);
  assert.equal(breaker.state(probedAt), "half-open");
  assert.equal(breaker.allows(probedAt), false, "the probe is still under way");
  breaker.succeeded(probedAt);
  assert.equal(breaker.state(probedAt), "closed");
});

test("a late failure of a request sent before it opened is no failed probe", () => {
  const breaker = opened();
  breaker.sent(pauseMicros);
  breaker.failed(pauseMicros + 5, "connect", 0);
  assert.equal(breaker.state(pauseMicros + 5), "half-open");
  breaker.failed(pauseMicros + 9, "connect", pauseMicros);
  assert.equal(breaker.state(pauseMicros + 8 + 2 * pauseMicros), "open");
});

test("it reports each opening with its fault and pause, and the closing, once", () => {
  const changes: BreakerChange[] = [];
  const breaker = new Breaker(EXACT, (change) => changes.push(change));
  breaker.succeeded(0);
  breaker.failed(1, "saturated", 0);
  breaker.failed(1, "draining", 0);
  breaker.failed(2, "connect", 0);
  const probedAt = 1 + drainingPauseMicros;
  breaker.sent(probedAt);
  breaker.failed(probedAt, "status", probedAt);
  const againAt = probedAt + 2 * pauseMicros;
  breaker.sent(againAt);
  breaker.succeeded(againAt);
  breaker.succeeded(againAt + pauseMicros);
  assert.deepEqual(changes, [
    { state: "open", fault: "draining", pauseMicros: drainingPauseMicros },
    { state: "open", fault: "status", pauseMicros: 2 * pauseMicros },
    { state: "closed" },
  ]);
});

test("whatever happens, it never stays open longer than its longest pause, and one probe is always let through", () => {
  for (const seed of drawnSeeds(50, 0)) {
    const random = randomFor(seed, 1);
    const breaker = new Breaker(EXACT);
    const flights: number[] = [];
    let at = 0;
    for (let i = 0; i < 200; i++) {
      at += random.below(2_000_000);
      if (breaker.allows(at)) {
        breaker.sent(at);
        flights.push(at);
      }
      const [sentAt] = flights.splice(random.below(Math.max(1, flights.length)), 1);
      const roll = random.below(4);
      if (sentAt === undefined) continue;
      if (roll === 0) breaker.succeeded(sentAt);
      else if (roll === 1) breaker.undecided(sentAt);
      else breaker.failed(at, roll === 2 ? "connect" : "saturated", sentAt);
      assert.notEqual(breaker.state(at + pauseMicrosMax), "open", `seed ${seed}`);
      if (flights.length === 0) assert.ok(breaker.allows(at + pauseMicrosMax), `seed ${seed}`);
    }
  }
});

/** How long a breaker of an endpoint stays open that opens at such a time, its probe failing so many times. */
function pausesOf(draws: number, at: number): number[] {
  const pauses: number[] = [];
  const options = { ...EXACT, jitterShare: 0.25 };
  const breaker = new Breaker(options, (change) => change.state === "open" && pauses.push(change.pauseMicros), draws);
  for (let i = 0; i < failuresMax; i++) breaker.failed(at, "connect", at);
  let now = at;
  for (let probe = 0; probe < 8; probe++) {
    now += pauses.at(-1)!;
    breaker.sent(now);
    breaker.failed(now, "connect", now);
  }
  return pauses;
}

test("pauses of endpoints that failed at once, and of gateways that saw it, end apart; the same inputs give the same ones", () => {
  const of = (count: number, one: (i: number) => number[]) => Array.from({ length: count }, (_, i) => one(i));
  const endpoints = of(100, (i) => pausesOf(i, 5_000_000));
  const gateways = of(100, (i) => pausesOf(7, 5_000_000 + i));
  for (const all of [endpoints, gateways]) {
    for (let probe = 0; probe < 9; probe++) {
      const longest = Math.min(pauseMicrosMax, pauseMicros * 2 ** probe);
      const pauses = all.map((one) => one[probe]!);
      assert.ok(pauses.every((pause) => pause >= 0.75 * longest - 1 && pause <= longest));
      assert.ok(Math.max(...pauses) - Math.min(...pauses) > 0.2 * longest);
      const mean = pauses.reduce((sum, pause) => sum + pause, 0) / pauses.length;
      assert.ok(Math.abs(mean - 0.875 * longest) < 0.03 * longest);
    }
  }
  assert.deepEqual(pausesOf(3, 5_000_000), endpoints[3]);
});
