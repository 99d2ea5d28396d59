import assert from "node:assert/strict";
import { test } from "node:test";
import { faultOfEvent, faultOfStatus, isFailedStatus } from "#live/answer/faults.ts";

const DRAINING = Buffer.from('{"error":{"message":"cannot schedule new futures after shutdown"}}');
const BUSY = Buffer.from('{"error":{"message":"The server is currently busy and cannot accept more requests"}}');
const OTHER = Buffer.from('{"error":{"message":"out of memory"}}');

test("an engine's error answer is its load, its end, or its failure, by status and text", () => {
  assert.equal(faultOfStatus(503, BUSY), "saturated");
  assert.equal(faultOfStatus(500, BUSY), "status");
  assert.equal(faultOfStatus(503, OTHER), "status");
  assert.equal(faultOfStatus(500, DRAINING), "draining");
});

test("of statuses, an engine fails by those from 500 on, but for a method or protocol that no engine knows", () => {
  for (const status of [500, 502, 503, 504, 599]) assert.ok(isFailedStatus(status), String(status));
  for (const status of [200, 400, 404, 429, 499, 501, 505]) assert.ok(!isFailedStatus(status), String(status));
});

test("an error event in a stream: 503 is load whatever its text, unless the engine is ending; 500 is a failure", () => {
  assert.equal(faultOfEvent(503, OTHER), "saturated");
  assert.equal(faultOfEvent(503, BUSY), "saturated");
  assert.equal(faultOfEvent(503, DRAINING), "draining");
  assert.equal(faultOfEvent(500, OTHER), "status");
});
