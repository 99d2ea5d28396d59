import assert from "node:assert/strict";
import { scrapedEvery } from "#sim/signal/scraped-every.ts";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import type { FleetEvent } from "#sim/setting/simulation-options.ts";
import { runCandidate } from "#shadow/candidate/candidate.ts";
import { windowAt } from "#core/rollout/rollout-state.ts";
import { FleetHistory } from "#shadow/recorded/fleet-history.ts";
import { RunBook } from "#shadow/recorded/recorded-run.ts";
import { inForceOf } from "#shadow/candidate/in-force.ts";
import { recordedSetting } from "#shadow/candidate/recorded-setting.ts";
import { request } from "../../core/state.ts";
import { CASE_ENGINE, caseEndpoints, caseSetting, caseWorkload, namedProfile } from "../question/what-if-case.ts";
import { HEADER } from "../../trace/trace-samples.ts";

const [A, B] = caseEndpoints("a", "b");

const cordoned = (endpoint: string, at: number): FleetEvent => ({ kind: "endpoint-cordoned", at, endpoint });
const joined = (at: number): FleetEvent => ({ kind: "endpoint-joined", at, endpoint: B! });
const left = (at: number): FleetEvent => ({ kind: "endpoint-left", at, endpoint: "b" });

import { after, DESIGNS, plannedOf, planOf, stepOf, WINDOW_MICROS } from "../../core/rollout/rollout-case.ts";

test("what happened before a time is how the fleet stands, what comes after happens", () => {
  const history = new FleetHistory(Infinity);
  history.endpoints.set("a", A!);
  for (const event of [joined(10), cordoned("a", 20), left(30), joined(40)]) history.add(event);
  history.advanceTo(25);
  assert.deepEqual([...history.endpoints.keys()], ["a", "b"]);
  assert.deepEqual(
    history.eventsFrom(25).map(({ kind, at }) => [kind, at]),
    [
      ["endpoint-cordoned", -1],
      ["endpoint-left", 5],
      ["endpoint-joined", 15],
    ],
  );
  history.add({ kind: "endpoint-uncordoned", at: 50, endpoint: "a" });
  history.advanceTo(60);
  assert.deepEqual(history.eventsFrom(60), []);
});

test("a join or a leave that the recorder dropped is made up for by what follows", () => {
  const history = new FleetHistory(Infinity);
  const suspended: FleetEvent = { kind: "endpoint-suspended", at: 2, endpoint: "b", reason: "silent" };
  for (const event of [joined(1), suspended, joined(3)]) history.stand(event);
  assert.deepEqual(history.eventsFrom(4), []);
  for (const event of [joined(10), left(20), left(30), joined(40), joined(50)]) history.add(event);
  const events = history.eventsFrom(0);
  assert.deepEqual(events, [left(10), joined(10), left(20), joined(40), left(50), joined(50)]);
  const setting = { ...caseSetting(caseWorkload().slice(0, 60)), fleetEvents: events };
  assert.equal(runCandidate(setting, namedProfile("gnomon")).endpoint.length, 60);
});

test("an endpoint that hangs as a window begins hangs in it, until it is let back or leaves", () => {
  const kinds = (history: FleetHistory) => history.eventsFrom(0).map(({ kind, at }) => [kind, at]);
  const suspended: FleetEvent = { kind: "endpoint-suspended", at: 5, endpoint: "b", reason: "silent" };
  const history = new FleetHistory(Infinity);
  for (const event of [joined(1), suspended]) history.stand(event);
  assert.deepEqual(kinds(history), [["endpoint-suspended", -1]]);
  history.stand({ kind: "endpoint-resumed", at: 6, endpoint: "b", servedUntilWell: 8 });
  assert.deepEqual(kinds(history), []);
  for (const event of [suspended, left(7)]) history.stand(event);
  assert.deepEqual(kinds(history), []);
});

test("an endpoint that sleeps as a window begins sleeps in it, until it is woken or leaves", () => {
  const events = (history: FleetHistory) => history.eventsFrom(0);
  const slept = (asleep: boolean): FleetEvent => ({ kind: "endpoint-slept", at: 5, endpoint: "b", asleep });
  const history = new FleetHistory(Infinity);
  for (const event of [joined(1), slept(true)]) history.stand(event);
  assert.deepEqual(events(history), [{ kind: "endpoint-slept", at: -1, endpoint: "b", asleep: true }]);
  history.stand(slept(false));
  assert.deepEqual(events(history), []);
  for (const event of [slept(true), left(7)]) history.stand(event);
  assert.deepEqual(events(history), []);
});

test("a profile that was changed stands in the header", () => {
  const history = new FleetHistory(Infinity);
  const profile = loadProfile("lmetric").spec;
  history.stand({ kind: "profile-changed", at: 0, name: HEADER.router.defaultProfile, profile });
  assert.deepEqual(inForceOf(history.header(HEADER)).spec, profile);
});

test("a fleet that changes for ever without traffic takes bounded memory in a window, and what it let go is counted", () => {
  const book = new RunBook(10);
  const history = new FleetHistory(100);
  history.endpoints.set("a", A!);
  for (let at = 0; at < 1_001; at += 2) for (const event of [joined(at), left(at + 1)]) history.add(event);
  const kept = history.eventsFrom(0).length;
  assert.ok(kept <= 100, String(kept));
  assert.equal(kept + history.merged, 1_002);
  assert.equal(book.close(HEADER).fleetEventsMerged, undefined);
  book.take({ kind: "request-arrived", at: 0, request: request({ id: "r" }) }, "a");
  for (let at = 1; at <= 30_000; at++) book.take(at % 2 === 1 ? joined(at) : left(at), undefined);
  const { fleetEvents, fleetEventsMerged } = book.close(HEADER);
  assert.equal(fleetEvents.length + fleetEventsMerged!, 30_000);
  assert.ok(fleetEvents.length <= 10_000);
});

test("an endpoint that was cordoned before the first request gets none, in whichever policy", () => {
  const setting = caseSetting(caseWorkload().slice(0, 60));
  const fleetEvents = [cordoned("b", -1)];
  const of = (name: string, events: readonly FleetEvent[]) =>
    new Set(runCandidate({ ...setting, fleetEvents: events }, namedProfile(name)).endpoint);
  for (const name of ["round-robin", "gnomon"]) {
    assert.ok(of(name, []).has(1));
    assert.deepEqual(
      [...of(name, fleetEvents)].toSorted((x, y) => x - y),
      [0, 2],
    );
  }
});

test("a request with more tokens than one can have is left out of a recorded run", () => {
  const book = new RunBook();
  for (const [id, tokens] of Object.entries({ a: [10, 1], b: [1e15, 1], c: [10, 1e9] })) {
    const [promptTokens, outputTokens] = tokens;
    book.take({ kind: "request-arrived", at: 0, request: request({ id }) }, "a");
    book.take(
      { kind: "request-finished", at: 9, requestId: id, outcome: "ok", promptTokens, cachedTokens: 0, outputTokens },
      undefined,
    );
  }
  const { workload, left } = book.close(HEADER);
  assert.equal(workload.length, 1);
  assert.deepEqual(left, { "more tokens than a request can have": 2 });
});

test("a recorded run's setting is its own traffic, fleet and router", () => {
  const book = new RunBook();
  book.endpoints.set("a", A!);
  const run = book.close(HEADER);
  const setting = recordedSetting(run, { engine: CASE_ENGINE, residuals: undefined, signals: scrapedEvery(7) });
  const { router } = HEADER;
  assert.deepEqual(
    [setting.seed, setting.blockTokens, setting.staleAfterMicros, setting.endpoints, setting.rateScale],
    [router.seed, router.blockTokens, router.staleAfterMicros, [A], 1],
  );
  assert.deepEqual(setting.signals, {
    mode: "scrape",
    intervalMicros: 7,
    phase: "spread",
    delayMicros: 5_000,
    lossShare: 0,
  });
  const without = { ...HEADER, router: { ...router, profiles: {} } };
  assert.throws(() => inForceOf(without), /does not hold the profile that was in force/);
});

test("a rollout that stood before the window stands in it, its windows at their times; one that had ended does not", () => {
  const plan = planOf(DESIGNS[0]!);
  const history = new FleetHistory(Infinity);
  for (const event of [plannedOf(plan, 10), stepOf("start", 1000)]) history.stand(event);
  const [event] = history.eventsFrom(5_000_000);
  assert.ok(event?.kind === "rollout-restored");
  assert.deepEqual([event.at, event.state.startedAt, event.state.phase], [-1, 1000 - 5_000_000, "running"]);
  assert.equal(
    windowAt(event.state, WINDOW_MICROS),
    windowAt(after(plan, stepOf("start", 1000)), WINDOW_MICROS + 5_000_000),
  );
  history.stand(stepOf("rollback", 2000));
  assert.deepEqual(history.eventsFrom(5_000_000), []);
});
