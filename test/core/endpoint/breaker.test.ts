import assert from "node:assert/strict";
import { test } from "node:test";
import { BREAKER_DEFAULTS, Breaker } from "#core/endpoint/breaker.ts";
import { randomFor } from "#core/random.ts";

const { failuresMax, pauseMicros, pauseMicrosMax, saturatedPauseMicros } = BREAKER_DEFAULTS;

function opened(at = 0): Breaker {
  const breaker = new Breaker(BREAKER_DEFAULTS);
  for (let i = 0; i < failuresMax; i++) breaker.failed(at, "connect");
  return breaker;
}

test("opens after the failures in a row that its options name, and a success in between starts the count anew", () => {
  const breaker = new Breaker(BREAKER_DEFAULTS);
  for (let i = 1; i < failuresMax; i++) breaker.failed(0, "status");
  breaker.succeeded();
  for (let i = 1; i < failuresMax; i++) breaker.failed(0, "status");
  assert.equal(breaker.state(0), "closed");
  breaker.failed(0, "status");
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
    breaker.failed(at, "connect");
    pause = Math.min(pause * 2, pauseMicrosMax);
  }
  at += pause;
  breaker.sent(at);
  breaker.succeeded();
  assert.equal(breaker.state(at), "closed");
});

test("draining opens at once; saturated pauses briefly and never counts as failure", () => {
  const draining = new Breaker(BREAKER_DEFAULTS);
  draining.failed(5, "draining");
  assert.equal(draining.state(5), "open");
  const full = new Breaker(BREAKER_DEFAULTS);
  for (let i = 0; i < 50; i++) full.failed(i, "saturated");
  assert.equal(full.state(49), "open");
  assert.equal(full.state(49 + saturatedPauseMicros), "closed");
});

test("a probe whose client left says nothing, and the next request may probe", () => {
  const breaker = opened();
  breaker.sent(pauseMicros);
  breaker.undecided();
  assert.ok(breaker.allows(pauseMicros));
});

test("late failures of requests sent before it opened neither prolong nor double the pause", () => {
  const breaker = opened();
  for (let i = 1; i < 10; i++) breaker.failed(i * 1000, "connect");
  assert.equal(breaker.state(pauseMicros), "half-open");
});

test("whatever happens, it never stays open longer than its longest pause", () => {
  for (let seed = 0; seed < 50; seed++) {
    const random = randomFor(seed, 1);
    const breaker = new Breaker(BREAKER_DEFAULTS);
    let at = 0;
    for (let i = 0; i < 200; i++) {
      at += random.below(2_000_000);
      if (breaker.allows(at)) breaker.sent(at);
      const roll = random.below(4);
      if (roll === 0) breaker.succeeded();
      else if (roll === 1) breaker.undecided();
      else breaker.failed(at, roll === 2 ? "connect" : "saturated");
      assert.notEqual(breaker.state(at + pauseMicrosMax), "open", `seed ${seed}`);
    }
  }
});
