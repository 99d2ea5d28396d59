import assert from "node:assert/strict";
import { test } from "node:test";
import { SlowReturn } from "#core/endpoint/slow-return.ts";

/** The most requests that it takes at once, up to a bound. */
function room(one: SlowReturn): number {
  let inFlight = 0;
  while (inFlight < 100 && one.allows(inFlight)) inFlight++;
  return inFlight;
}

test("a hung endpoint takes nothing, then twice as many more with each that it served, then any number", () => {
  const one = new SlowReturn();
  assert.deepEqual([one.standing, room(one)], ["well", 100]);
  one.suspend();
  one.served();
  assert.deepEqual([one.standing, room(one)], ["hung", 0]);
  one.resume(3);
  assert.deepEqual([one.standing, room(one)], ["returning", 1]);
  one.served();
  assert.equal(room(one), 3, "the one that it served, and two more");
  one.served();
  assert.deepEqual([one.standing, room(one)], ["returning", 7]);
  one.resume(3);
  assert.equal(room(one), 7, "it is back already");
  one.served();
  assert.deepEqual([one.standing, room(one)], ["well", 100]);
});

test("what it still had as it was let back is no reason to give it nothing", () => {
  const one = new SlowReturn();
  one.suspend();
  one.resume(8, 5);
  assert.ok(one.allows(5), "one beside those five");
  assert.ok(!one.allows(6));
  assert.ok(one.allows(3), "two of them ended");
  assert.ok(!one.allows(4));
});

test("it can be let back at once", () => {
  const one = new SlowReturn();
  one.suspend();
  one.resume(0);
  assert.equal(one.standing, "well");
});
