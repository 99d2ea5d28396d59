import assert from "node:assert/strict";
import { test } from "node:test";
import { EndpointState } from "#core/endpoint/endpoint-state.ts";
import { load } from "../state.ts";

const BREAKER = {
  failuresMax: 3,
  pauseMicros: 1,
  pauseMicrosMax: 1,
  jitterShare: 0,
  saturatedPauseMicros: 0,
  drainingPauseMicros: 0,
};
const STALE_AFTER_MICROS = 1_000;

function state(kvCapacityTokens = 10_000): EndpointState {
  const endpoint = { id: "a", models: [], labels: {}, kvCapacityTokens, concurrencyMax: undefined };
  const made = new EndpointState(endpoint, 0, BREAKER);
  made.requestsInFlight = 3;
  return made;
}

function effectiveLoad(made: EndpointState, at: number): number {
  made.refresh(at, STALE_AFTER_MICROS);
  return made.effectiveLoad;
}

test("requests that a scrape shows beyond our own count while it is fresh, and ours always", () => {
  const made = state();
  assert.equal(effectiveLoad(made, 0), 3);
  assert.deepEqual([made.freshness, made.loadAgeMicros], ["unknown", -1]);
  made.observeLoad(5_000, load({ running: 6, waiting: 2 }));
  assert.equal(effectiveLoad(made, 5_000), 8);
  made.requestsInFlight = 4;
  assert.equal(effectiveLoad(made, 6_000), 9, "those of others stay, ours are as many as there are");
  assert.deepEqual([made.freshness, made.loadAgeMicros], ["fresh", 1_000]);
  assert.equal(effectiveLoad(made, 6_001), 4);
  assert.deepEqual([made.freshness, made.loadAgeMicros], ["stale", 1_001]);
});

test("a scrape with fewer requests than ours, or without its batch, shows none of others", () => {
  const made = state();
  made.observeLoad(0, load({ running: 1, waiting: 1 }));
  assert.equal(effectiveLoad(made, 0), 3);
  made.observeLoad(0, load({ running: 5 }));
  assert.equal(effectiveLoad(made, 0), 5);
  made.observeLoad(0, load({ waiting: 9 }));
  assert.equal(effectiveLoad(made, 0), 3);
});

test("KV utilization is the fresh scrape's, else what is in flight takes of the capacity, at most all", () => {
  const made = state();
  made.decodeTokens = 2_500;
  const estimate = made.tokensInFlight / 10_000;
  made.refresh(0, STALE_AFTER_MICROS);
  assert.ok(estimate > 0 && estimate < 1);
  assert.equal(made.kvUtilization, estimate);
  made.observeLoad(0, load({ running: 1, kvUtilization: 0.7 }));
  made.refresh(1_000, STALE_AFTER_MICROS);
  assert.equal(made.kvUtilization, 0.7);
  made.refresh(1_001, STALE_AFTER_MICROS);
  assert.equal(made.kvUtilization, estimate);
  const full = state(100);
  full.decodeTokens = 2_500;
  full.refresh(0, STALE_AFTER_MICROS);
  assert.equal(full.kvUtilization, 1);
});

const UNSEEN = { firstTokenAt: undefined, tpotMicros: undefined };

test("an endpoint that returns may have more with what it answered for a peer, whose ends show its time per token", () => {
  const made = state();
  made.requestsInFlight = 0;
  made.suspend();
  made.resume(2);
  made.peerEnded(1_000, "failed", UNSEEN);
  assert.equal(made.standing, "returning");
  assert.ok(!made.slowReturn?.allows(1));
  made.peerEnded(2_000, "ok", { firstTokenAt: 0, tpotMicros: 10_000 });
  assert.ok(!made.slowReturn?.allows(1), "its first token was reported before");
  made.refresh(2_000, STALE_AFTER_MICROS);
  assert.equal(made.tpotMicros, 10_000);
  made.peerEnded(3_000, "ok", UNSEEN);
  assert.deepEqual([made.standing, made.slowReturn!.allows(2), made.slowReturn!.allows(3)], ["returning", true, false]);
  made.peerEnded(4_000, "ok", UNSEEN);
  assert.equal(made.standing, "well");
});
