import assert from "node:assert/strict";
import { test } from "node:test";
import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import { HANG_DEFAULTS, type HangVerdict } from "#core/endpoint/hang-judge.ts";
import type { Input } from "#core/input/input.ts";
import { HangWatch } from "#core/path/hang-watch.ts";

const SECOND = MICROS_PER_SECOND;
const STALLED = HANG_DEFAULTS.stalledMicros;
const { prefillMicrosPerToken } = HANG_DEFAULTS;

/** A watch whose verdicts come back to it as the router's inputs do. */
function startWatch(serverOf?: (endpoint: string) => string | undefined) {
  const inputs: Input[] = [];
  const judged: (readonly [endpoint: string, kind: HangVerdict["kind"], requestsWaiting: number])[] = [];
  const watch = new HangWatch({
    judge: HANG_DEFAULTS,
    servedUntilWell: 1,
    accept: (input) => {
      inputs.push(input);
      watch.follow(input);
    },
    judged: (endpoint, verdict, waiting) => judged.push([endpoint, verdict.kind, waiting]),
    ...(serverOf && { serverOf }),
  });
  const joins = (id: string, at: Micros = 0): void => {
    const endpoint = { id, models: [], labels: {}, kvCapacityTokens: undefined, concurrencyMax: undefined };
    watch.follow({ kind: "endpoint-joined", at, endpoint });
  };
  /** One sweep that finds these waiting. */
  const sweeps = (at: Micros, waits: readonly Parameters<HangWatch["waits"]>[] = []): void => {
    watch.sweepBegins();
    for (const one of waits) watch.waits(...one);
    watch.sweepEnds(at);
  };
  return { watch, inputs, judged, joins, sweeps };
}

test("who waits longest at an endpoint counts, whatever the order, and all of them are counted", () => {
  for (const since of [
    [0, 9 * SECOND],
    [9 * SECOND, 0],
  ]) {
    const { watch, judged, joins, sweeps } = startWatch();
    joins("a");
    watch.probed("a", "static", 0);
    const waiting = since.map((from): Parameters<HangWatch["waits"]> => ["a", "stream", from]);
    sweeps(STALLED - 1, waiting);
    assert.deepEqual(judged, []);
    sweeps(STALLED, waiting);
    assert.deepEqual(judged, [["a", "suspend", 2]]);
    assert.ok(watch.isHung("a"));
  }
});

test("what waited in the sweep before does not wait in this one", () => {
  const { watch, judged, joins, sweeps } = startWatch();
  joins("a");
  watch.probed("a", "static", 0);
  sweeps(SECOND, [["a", "stream", 0]]);
  sweeps(2 * STALLED);
  assert.deepEqual(judged, []);
  sweeps(2 * STALLED + 1, [["a", "stream", 0]]);
  assert.deepEqual(judged, [["a", "suspend", 1]]);
});

test("the longest prompt that waits has its time, whatever the order", () => {
  const tokens = (2 * STALLED) / prefillMicrosPerToken;
  for (const prompts of [
    [tokens, 10],
    [10, tokens],
  ]) {
    const { watch, judged, joins, sweeps } = startWatch();
    joins("a");
    watch.probed("a", "static", 0);
    const waiting = prompts.map((prompt): Parameters<HangWatch["waits"]> => ["a", "stream", 0, prompt]);
    sweeps(2 * STALLED - 1, waiting);
    assert.deepEqual(judged, []);
    sweeps(2 * STALLED, waiting);
    assert.deepEqual(judged, [["a", "suspend", 2]]);
  }
});

test("what waits at an engine that sleeps, or at one that nobody knows, speaks against nobody", () => {
  const { watch, judged, joins, sweeps } = startWatch();
  joins("a");
  joins("b");
  for (const id of ["a", "b"]) watch.probed(id, "static", 0);
  watch.follow({ kind: "endpoint-slept", at: 0, endpoint: "a", asleep: true });
  const both: Parameters<HangWatch["waits"]>[] = [
    ["a", "stream", 0],
    ["unknown", "stream", 0],
    ["b", "stream", 0],
  ];
  sweeps(STALLED, both);
  assert.deepEqual(judged, [["b", "suspend", 1]]);
  // It woke: it is judged anew, from then on.
  watch.follow({ kind: "endpoint-slept", at: STALLED, endpoint: "a", asleep: false });
  watch.probed("a", "static", STALLED);
  sweeps(2 * STALLED - 1, both);
  assert.deepEqual(judged.slice(1), []);
  sweeps(2 * STALLED, both);
  assert.deepEqual(judged.slice(1), [["a", "suspend", 1]]);
});

test("one that hangs and wakes is still the one that hangs, and who goes to sleep is not judged anew", () => {
  const { watch, inputs, judged, joins, sweeps } = startWatch();
  joins("a");
  watch.probed("a", "static", 0);
  sweeps(STALLED, [["a", "stream", 0]]);
  watch.follow({ kind: "endpoint-slept", at: STALLED, endpoint: "a", asleep: true });
  watch.follow({ kind: "endpoint-slept", at: STALLED, endpoint: "a", asleep: false });
  assert.ok(watch.isHung("a"));
  for (let i = 1; i <= HANG_DEFAULTS.probesAnsweredMin; i++) watch.probed("a", "moving", STALLED + i * SECOND);
  assert.deepEqual(
    judged.map(([, kind]) => kind),
    ["suspend", "resume"],
  );
  assert.deepEqual(
    inputs.map(({ kind }) => kind),
    ["endpoint-suspended", "endpoint-resumed"],
  );
  assert.ok(!watch.isHung("a"));

  const other = startWatch();
  other.joins("a");
  for (const at of [0, SECOND]) other.watch.probed("a", "none", at);
  other.watch.follow({ kind: "endpoint-slept", at: SECOND, endpoint: "a", asleep: true });
  other.sweeps(HANG_DEFAULTS.silentMicros);
  assert.deepEqual(other.judged, [["a", "suspend", 0]], "its failed probes count on");
});

test("one that was never swept, or only in vain, has nobody waiting", () => {
  const { watch, judged, joins } = startWatch();
  joins("a");
  for (const at of [SECOND, HANG_DEFAULTS.silentMicros]) watch.probed("a", "none", at);
  assert.deepEqual(judged, [["a", "suspend", 0]]);
});

test("a byte from one rank is a sign of all ranks of its server, and of no other endpoint", () => {
  const servers: Readonly<Record<string, string>> = { "rank-0": "one", "rank-1": "one", "other-0": "two" };
  const { watch, judged, joins, sweeps } = startWatch((endpoint) => servers[endpoint]);
  const all = ["rank-0", "rank-1", "other-0", "alone"];
  for (const id of all) joins(id);
  for (let at = 0; at <= HANG_DEFAULTS.silentMicros; at += SECOND) {
    for (const id of all) watch.probed(id, "none", at);
    watch.answered("rank-0", at);
    sweeps(at);
  }
  assert.deepEqual(
    judged.map(([endpoint]) => endpoint),
    ["other-0", "alone"],
  );
});

test("an endpoint that left is forgotten, with what it was", () => {
  const { watch, judged, joins, sweeps } = startWatch();
  joins("a");
  watch.probed("a", "static", 0);
  watch.follow({ kind: "endpoint-slept", at: 0, endpoint: "a", asleep: true });
  watch.follow({ kind: "endpoint-left", at: 1, endpoint: "a" });
  watch.probed("a", "none", 1);
  joins("a", 2);
  watch.probed("a", "static", 2);
  sweeps(2 + STALLED, [["a", "stream", 2]]);
  assert.deepEqual(judged, [["a", "suspend", 1]]);
  watch.follow({ kind: "endpoint-left", at: 3 + STALLED, endpoint: "a" });
  assert.ok(!watch.isHung("a"));
});
