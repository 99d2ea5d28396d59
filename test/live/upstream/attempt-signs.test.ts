import assert from "node:assert/strict";
import { test } from "node:test";
import type { Exchange } from "#live/request/exchange.ts";
import { AttemptSigns } from "#live/upstream/attempt-signs.ts";

/** Signs of an attempt, and what the judge of hung endpoints gets to know of it. */
function signs(stream: boolean): { made: AttemptSigns; known: unknown[][] } {
  const known: unknown[][] = [];
  const hangs = {
    answered: (...one: unknown[]) => known.push(["answered", ...one]),
    waits: (...one: unknown[]) => known.push(["waits", ...one]),
    took: (...one: unknown[]) => known.push(["took", ...one]),
    isHung: () => false,
  };
  const directory = { get: () => ({ state: "ready" }) };
  const context = { hangs, directory } as unknown as Exchange["context"];
  return { made: new AttemptSigns({ context, stream }, "e1", 1_000), known };
}

test("an answer in one piece is known by how long it took, a stream by its first token", () => {
  const whole = signs(false);
  whole.made.completed(undefined, 5_000);
  assert.deepEqual(whole.known, [
    ["answered", "e1", 5_000],
    ["took", "e1", "whole", 4_000],
  ]);
  const stream = signs(true);
  stream.made.completed(1_700, 9_000);
  assert.deepEqual(stream.known, [
    ["answered", "e1", 9_000],
    ["took", "e1", "stream", 700],
  ]);
});

test("a stream without a token shows nothing of how long a token takes", () => {
  const { made, known } = signs(true);
  made.completed(undefined, 5_000);
  assert.deepEqual(known, [["answered", "e1", 5_000]]);
});

test("silence is counted from the last sweep that saw a piece; an attempt that nobody reads waits for nothing", () => {
  const { made, known } = signs(true);
  assert.equal(made.sweep(2_000, true), 1_000);
  assert.deepEqual(known.splice(0), [["waits", "e1", "stream", 1_000]]);
  made.alive();
  assert.equal(made.sweep(3_000, true), 0);
  assert.deepEqual(known.splice(0), [["answered", "e1", 3_000]]);
  assert.equal(made.sweep(4_500, false), 1_500);
  assert.deepEqual(known, []);
});
