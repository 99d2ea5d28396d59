import assert from "node:assert/strict";
import { test } from "node:test";
import { BREAKER_DEFAULTS } from "#core/endpoint/breaker.ts";
import { EndpointState } from "#core/endpoint/endpoint-state.ts";

const ENDPOINT = { id: "a", models: [], labels: {}, kvCapacityTokens: undefined, concurrencyMax: undefined };

const fresh = (): EndpointState => new EndpointState(ENDPOINT, 0, BREAKER_DEFAULTS);
const takes = (one: EndpointState, inFlight: number): boolean => {
  one.requestsInFlight = inFlight;
  return one.eligibility(0, { model: "m" }, []) === 0;
};
const served = (one: EndpointState): void => one.peerEnded(0, "ok", { firstTokenAt: undefined, tpotMicros: undefined });

/** The most requests that it takes at once, up to a bound. */
function room(one: EndpointState): number {
  let inFlight = 0;
  while (inFlight < 100 && takes(one, inFlight)) inFlight++;
  one.requestsInFlight = 0;
  return inFlight;
}

test("a hung endpoint takes nothing, then twice as many more with each that it served, then any number", () => {
  const one = fresh();
  assert.deepEqual([one.standing, room(one)], ["well", 100]);
  one.suspend();
  served(one);
  assert.deepEqual([one.standing, room(one)], ["hung", 0]);
  one.resume(3);
  assert.deepEqual([one.standing, room(one)], ["returning", 1]);
  served(one);
  assert.equal(room(one), 3, "the one that it served, and two more");
  served(one);
  assert.deepEqual([one.standing, room(one)], ["returning", 7]);
  one.resume(3);
  assert.equal(room(one), 7, "it is back already");
  served(one);
  assert.deepEqual([one.standing, room(one)], ["well", 100]);
});

test("what it still had as it was let back is no reason to give it nothing", () => {
  const one = fresh();
  one.suspend();
  one.requestsInFlight = 5;
  one.resume(8);
  assert.ok(takes(one, 5), "one beside those five");
  assert.ok(!takes(one, 6));
  assert.ok(takes(one, 3), "two of them ended");
  assert.ok(!takes(one, 4));
});

test("it can be let back at once, and one that is well stays so", () => {
  const one = fresh();
  one.resume(3);
  assert.equal(one.standing, "well");
  one.suspend();
  one.resume(0);
  assert.equal(one.standing, "well");
});
