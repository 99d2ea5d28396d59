import assert from "node:assert/strict";
import { test } from "node:test";
import type { Load } from "#core/endpoint/endpoint.ts";
import { batchRoom } from "#core/latency/latency-model.ts";
import { load } from "../state.ts";

const ENDPOINT = { concurrencyMax: 64, kvCapacityTokens: 100_000 };
const seen = (running: number, waiting: number, kvUtilization: number): Load =>
  load({ running, waiting, kvUtilization });

test("a batch has as many places as it may have, or as its cache has room for", () => {
  assert.equal(batchRoom(ENDPOINT, undefined, 1_000), 64);
  assert.equal(batchRoom(ENDPOINT, undefined, 4_000), 25);
  assert.equal(batchRoom(ENDPOINT, undefined, 400_000), 1);
  assert.equal(batchRoom({ concurrencyMax: undefined, kvCapacityTokens: undefined }, undefined, 4_000), Infinity);
  assert.equal(batchRoom(undefined, undefined, 4_000), Infinity);
});

test("gauges that show room outweigh contexts that were added up, which may lie there once for many", () => {
  assert.equal(batchRoom(ENDPOINT, seen(30, 0, 0.3), 50_000), 64);
  assert.equal(batchRoom(ENDPOINT, seen(30, 0, 0.7), 50_000), 2);
});

test("a full batch is as large as it is seen to be while others wait; prompts that wait for their step make none full", () => {
  assert.equal(batchRoom(ENDPOINT, seen(12, 30, 0.97), 1_000), 12);
  assert.equal(batchRoom(ENDPOINT, seen(64, 30, 0.4), 1_000), 64);
  assert.equal(batchRoom(ENDPOINT, seen(12, 30, 0.4), 1_000), 64);
  assert.equal(batchRoom(ENDPOINT, seen(12, 0, 0.97), 1_000), 64);
  assert.equal(
    batchRoom(ENDPOINT, seen(64, 1, 0.7), 4_000),
    64,
    "as many as it may run, whatever they were thought to need",
  );
  assert.equal(batchRoom(ENDPOINT, seen(63, 1, 0.7), 4_000), 25);
});
