import assert from "node:assert/strict";
import { test } from "node:test";
import { Aboard } from "#core/scorer/latency-forecaster.ts";

const one = (promptTokens: number, newTokens: number, pairs: number, firstTokenAt?: number) => {
  return { promptTokens, sequences: 1, newTokens, pairs, firstTokenAt };
};

test("what was aboard between two times is the mean over the time between them", () => {
  const aboard = new Aboard(1_000);
  aboard.sent(1_000, 500, 1, 0);
  aboard.sent(1_000, 700, 1, 0);
  aboard.computed(2_000, one(500, 300, 0));
  const before = aboard.until(2_000);
  aboard.computed(3_000, one(700, 700, 0));
  aboard.left(5_000, one(700, 0, 0, 3_000));
  const after = aboard.until(6_000);
  // One of 500 tokens for 4,000 us, one of 700 for 2,000 of them.
  assert.equal(after.requestMicros - before.requestMicros, 4_000 + 2_000);
  assert.equal(after.promptTokenMicros - before.promptTokenMicros, 4_000 * 500 + 2_000 * 700);
  assert.equal(after.computedTokens - before.computedTokens, 700);
  assert.deepEqual([aboard.requests, aboard.promptTokens], [1, 500]);
});

test("nothing is left of requests that are gone, with or without a first token", () => {
  const aboard = new Aboard(0);
  for (let i = 0; i < 40; i++) aboard.sent(i, 100 + i, 1, 10 * i);
  for (let i = 0; i < 20; i++) aboard.computed(50 + i, one(100 + i, 50, 10 * i));
  for (let i = 0; i < 40; i++) aboard.left(100 + i, one(100 + i, 0, 10 * i, i < 20 ? 50 + i : undefined));
  assert.deepEqual([aboard.requests, aboard.promptTokens, aboard.queuedPairs], [0, 0, 0]);
  assert.equal(aboard.ageMicros(500), 0);
  assert.equal(aboard.computingMicros(500), 0);
});

test("answers are as old as the mean of them, and prompts are computed since the last first token", () => {
  const aboard = new Aboard(0);
  aboard.sent(100, 10, 1, 0);
  assert.equal(aboard.computingMicros(150), 50);
  aboard.sent(120, 10, 1, 0);
  aboard.computed(200, one(10, 10, 0));
  assert.equal(aboard.computingMicros(260), 60);
  aboard.computed(400, one(10, 10, 0));
  assert.equal(aboard.computingMicros(900), 0);
  assert.equal(aboard.ageMicros(500), 200);
  aboard.sent(600, 10, 1, 0);
  assert.equal(aboard.computingMicros(640), 40);
});

test("each of several answers to one prompt counts, in the batch and in the mean of their age", () => {
  const aboard = new Aboard(0);
  const three = { ...one(100, 100, 0, 1_000), sequences: 3 };
  aboard.sent(0, 100, 3, 0);
  aboard.sent(0, 100, 1, 0);
  aboard.computed(1_000, three);
  aboard.computed(2_000, one(100, 100, 0));
  assert.deepEqual([aboard.requests, aboard.ageMicros(3_000)], [4, (3 * 2_000 + 1_000) / 4]);
  assert.equal(aboard.until(3_000).requestMicros, 3 * 2_000 + 1_000);
  aboard.left(3_000, three);
  assert.deepEqual([aboard.requests, aboard.ageMicros(3_000)], [1, 1_000]);
});
