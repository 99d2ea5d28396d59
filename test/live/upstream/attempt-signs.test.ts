import assert from "node:assert/strict";
import { test } from "node:test";
import { AttemptSigns, type WatchedEndpoints } from "#live/upstream/connection/attempt-signs.ts";

interface Signs {
  readonly made: AttemptSigns;
  readonly known: unknown[][];
  readonly hangs: { stoodStillUntil: number };
  /** Its endpoint: whether it hangs, and what the directory has of it. */
  readonly endpoint: { isHung: boolean; entry: object | undefined };
}

/** Signs of an attempt, and what the judge of hung endpoints gets to know of it. */
function signs(stream: boolean): Signs {
  const known: unknown[][] = [];
  const endpoint: Signs["endpoint"] = { isHung: false, entry: { state: "ready" } };
  const hangs = {
    stoodStillUntil: 0,
    answered: (...one: unknown[]) => known.push(["answered", ...one]),
    waits: (...one: unknown[]) => known.push(["waits", ...one]),
    took: (...one: unknown[]) => known.push(["took", ...one]),
    isHung: () => endpoint.isHung,
    isDraining: () => false,
  };
  const directory = { get: () => endpoint.entry };
  const watched = { hangs, directory } as unknown as WatchedEndpoints;
  return { made: new AttemptSigns(watched, "e1", 1_000, stream, 64), known, endpoint, hangs };
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
  assert.deepEqual(known.splice(0), [["waits", "e1", "stream", 1_000, 64]]);
  made.alive();
  assert.equal(made.sweep(3_000, true), 0);
  assert.deepEqual(known.splice(0), [["answered", "e1", 3_000]]);
  assert.equal(made.sweep(4_500, false), 1_500);
  assert.deepEqual(known, []);
});

test("a stream that has a token waits for the next one, and for no prompt", () => {
  const { made, known } = signs(true);
  made.sweep(2_000, true, true);
  const whole = signs(false);
  whole.made.sweep(2_000, true);
  assert.deepEqual(
    [...known, ...whole.known],
    [
      ["waits", "e1", "begun", 1_000, 0],
      ["waits", "e1", "whole", 1_000, 64],
    ],
  );
});

test("while this program stood still nothing could be seen, and no silence is counted", () => {
  const { made, known, hangs } = signs(true);
  hangs.stoodStillUntil = 60_000;
  assert.equal(made.sweep(61_000, true), 1_000);
  assert.deepEqual(known, [["waits", "e1", "stream", 60_000, 64]]);
});

test("an endpoint's most serious trouble is the one that counts, since when it is that", () => {
  const { made, endpoint } = signs(true);
  const troubleOf = (at: number, entry: object | undefined, isHung = false) => {
    Object.assign(endpoint, { entry, isHung });
    return made.trouble(at);
  };
  assert.equal(troubleOf(2_000, { state: "ready" }), undefined);
  assert.deepEqual(troubleOf(3_000, { state: "ready", evicts: true }), { kind: "evicted", since: 3_000 });
  assert.deepEqual(troubleOf(4_000, { state: "ready", evicts: true, asleep: true }), { kind: "asleep", since: 4_000 });
  assert.deepEqual(troubleOf(5_000, { state: "ready", asleep: true }), { kind: "asleep", since: 4_000 });
  assert.deepEqual(troubleOf(6_000, { state: "ready", asleep: true }, true), { kind: "hung", since: 6_000 });
  assert.deepEqual(troubleOf(7_000, { state: "lost", asleep: true }, true), { kind: "lost", since: 7_000 });
  assert.deepEqual(troubleOf(8_000, undefined, true), { kind: "hung", since: 8_000 });
  assert.equal(troubleOf(9_000, undefined), undefined);
  assert.deepEqual(troubleOf(9_500, { state: "lost" }), { kind: "lost", since: 9_500 });
});
