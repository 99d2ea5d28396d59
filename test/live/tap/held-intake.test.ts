import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import type { Decision } from "#core/input/decision.ts";
import type { Input, RequestArrived, RequestFinished } from "#core/input/input.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { randomFor } from "#core/base/random.ts";
import type { ObservedPlace } from "#core/request/observed-place.ts";
import { Router } from "#core/router.ts";
import { HeldIntake, type HeldIntakeOptions } from "#live/tap/held-intake.ts";
import { load, request } from "../../core/state.ts";
import { until } from "../discovery/fleet-under-test.ts";

const SEEN: ObservedPlace = { endpoint: "b", by: "header", sure: 1 };

function rig(t: TestContext, more: Partial<HeldIntakeOptions> = {}) {
  const router = new Router({
    seed: 1,
    profiles: { gnomon: loadProfile("gnomon").spec },
    defaultProfile: "gnomon",
    index: new ApproximateIndex(),
    blockTokens: 16,
    staleAfterMicros: 1_000_000,
  });
  const clock = { at: 0 };
  const failures: unknown[] = [];
  const intake = new HeldIntake({
    router,
    holdMillis: 1_000,
    holdBytesMax: 1_048_576,
    failed: (error) => failures.push(error),
    now: () => clock.at,
    ...more,
  });
  t.after(() => intake.flush());
  const got: { input: Input; decision: Decision | undefined }[] = [];
  intake.listen({ accepted: (input, decision) => got.push({ input, decision }) });
  for (const id of ["a", "b"]) {
    const endpoint = { id, models: [], labels: {}, kvCapacityTokens: undefined, concurrencyMax: undefined };
    intake.accept({ kind: "endpoint-joined", at: 0, endpoint });
  }
  got.length = 0;
  return { intake, router, clock, got, failures };
}

const arrival = (id: string, at: number): RequestArrived => ({
  kind: "request-arrived",
  at,
  request: request({ id, model: "m" }),
});
const end = (requestId: string, at: number): RequestFinished => ({
  kind: "request-finished",
  at,
  requestId,
  outcome: "ok",
  promptTokens: 1,
  cachedTokens: 0,
  outputTokens: 1,
});
const gauges = (at: number): Input => ({ kind: "load-observed", at, endpoint: "a", load: load({ running: 1 }) });

test("what waits for nothing is accepted at once", (t) => {
  const { intake, got } = rig(t);
  intake.accept(gauges(1));
  assert.deepEqual(
    got.map(({ input }) => input.at),
    [1],
  );
  assert.equal(intake.held, 0);
});

test("an arrival waits for its place, and all behind it in its order; the decision has the place", (t) => {
  const { intake, got } = rig(t);
  intake.arrived(arrival("1", 1));
  intake.accept(gauges(2));
  intake.arrived(arrival("2", 3));
  intake.followed(end("1", 4));
  assert.deepEqual([got.length, intake.held], [0, 4]);
  intake.placed("2", SEEN);
  assert.equal(got.length, 0, "the second waits behind the first");
  intake.placed("1", { endpoint: "a", by: "metrics", sure: 0.5 });
  assert.deepEqual(
    got.map(({ input, decision }) => [input.kind, input.at, decision?.kind === "routed" && decision.endpoint]),
    [
      ["request-arrived", 1, "a"],
      ["load-observed", 2, false],
      ["request-arrived", 3, "b"],
      ["request-finished", 4, false],
    ],
  );
  assert.deepEqual([intake.held, intake.heldBytes], [0, 0]);
  assert.deepEqual([intake.counts.header, intake.counts.metrics, intake.counts.none], [1, 1, 0]);
});

test("who waited long enough goes on without a place, and moves where it is learned after all", async (t) => {
  const { intake, got, clock, router } = rig(t);
  intake.arrived(arrival("1", 0));
  intake.arrived(arrival("2", 900_000));
  clock.at = 1_500_000;
  await until("the first has given way", () => intake.givenWay.time === 1);
  assert.deepEqual(
    got.map(({ input }) => input.kind === "request-arrived" && input.observed?.by),
    ["none"],
  );
  assert.ok(intake.awaits("1") && intake.awaits("2"));
  intake.placed("2", SEEN);
  intake.placed("1", SEEN);
  assert.deepEqual(
    got.map(({ input }) => input.kind),
    ["request-arrived", "request-arrived", "request-moved"],
  );
  assert.deepEqual(
    router.endpointRows(clock.at).map(({ requestsInFlight }) => requestsInFlight),
    [0, 2],
  );
  assert.deepEqual([intake.moved, intake.tooLate, intake.awaits("1")], [1, 0, false]);
});

test("a place that is learned behind the end of a request that was let go is counted, and nothing is kept of it", async (t) => {
  const { intake, clock, router } = rig(t);
  intake.arrived(arrival("1", 0));
  intake.followed(end("1", 1));
  clock.at = 2_000_000;
  await until("it has given way", () => intake.givenWay.time === 1);
  assert.equal(intake.awaits("1"), false);
  intake.placed("1", SEEN);
  assert.deepEqual([intake.moved, intake.tooLate, router.strayInputs], [0, 1, 0]);
});

test("beyond its room the oldest arrivals give way, whatever comes", (t) => {
  const { intake } = rig(t, { holdBytesMax: 20_000 });
  const random = randomFor(11, 3);
  for (let i = 0; i < 2_000; i++) {
    intake.arrived(arrival(String(i), i));
    if (random.below(3) === 0) intake.accept(gauges(i));
    if (random.below(2) === 0) intake.placed(String(random.below(i + 1)), SEEN);
    assert.ok(intake.heldBytes <= 20_000, `${intake.heldBytes} bytes`);
  }
  const { counts, givenWay } = intake;
  assert.ok(givenWay.room > 500, `${givenWay.room} gave way`);
  assert.equal(counts.none, givenWay.room);
});

test("inputs reach the router in the order of their times, each once, whenever places are learned", (t) => {
  for (let seed = 1; seed <= 20; seed++) {
    const { intake, got } = rig(t, { holdBytesMax: 60_000 });
    const random = randomFor(seed, 5);
    const open: string[] = [];
    for (let at = 1; at <= 400; at++) {
      if (random.below(2) === 0) {
        intake.arrived(arrival(String(at), at));
        open.push(String(at));
      } else intake.accept(gauges(at));
      while (open.length > 0 && random.below(2) === 0)
        intake.placed(
          open.splice(random.below(open.length), 1)[0]!,
          random.below(4) === 0 ? { ...SEEN, endpoint: "a" } : SEEN,
        );
    }
    intake.flush();
    const times = got.filter(({ input }) => input.kind !== "request-moved").map(({ input }) => input.at);
    assert.deepEqual(
      times,
      Array.from({ length: 400 }, (_, i) => i + 1),
      `seed ${seed}`,
    );
  }
});

test("an input that the router refuses is reported, and those behind it go on", (t) => {
  const { intake, got, failures } = rig(t);
  intake.arrived(arrival("1", 1));
  intake.arrived(arrival("1", 2));
  intake.accept(gauges(3));
  intake.placed("1", SEEN);
  intake.flush();
  assert.equal(failures.length, 1);
  assert.deepEqual(
    got.map(({ input }) => input.at),
    [1, 3],
  );
});
