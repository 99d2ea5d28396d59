import assert from "node:assert/strict";
import { test } from "node:test";
import { HANG_DEFAULTS } from "#core/endpoint/hang-judge.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import { Intake } from "#live/base/intake.ts";
import type { FaultEvent } from "#live/log/fault-log.ts";
import { HangDetector } from "#live/keeper/hang-detector.ts";
import { emptyRouter } from "../discovery/fleet-under-test.ts";

const SECOND = MICROS_PER_SECOND;

/** A watch over two ranks behind one address, and one endpoint of its own. */
function watchUnderTest() {
  const clock = { at: 0 };
  const router = emptyRouter();
  const intake = new Intake(router);
  const directory = new EndpointDirectory();
  const events: FaultEvent[] = [];
  const kinds: string[] = [];
  const watch = new HangDetector({ intake, directory, now: () => clock.at, report: (event) => events.push(event) });
  intake.listen({ accepted: (input) => kinds.push(input.kind) });
  for (const [id, url, dataParallelRank] of [
    ["rank-0", "http://one", 0],
    ["rank-1", "http://one", 1],
    ["alone", "http://two", undefined],
  ] as const) {
    directory.add({ id, url, dataParallelRank, apiKey: undefined, state: "ready", detail: "", models: [] });
    const endpoint = { id, models: [], labels: {}, kvCapacityTokens: undefined, concurrencyMax: undefined };
    intake.accept({ kind: "endpoint-joined", at: 0, endpoint });
  }
  /** Probes that fail for so long, and what comes from the first rank in each sweep. */
  const runSilent = (micros: number, firstRankAnswers: boolean): void => {
    for (const until = clock.at + micros; clock.at < until; clock.at += SECOND) {
      watch.sweepBegins();
      if (firstRankAnswers) watch.answered("rank-0", clock.at);
      watch.sweepEnds();
      for (const id of ["rank-0", "rank-1", "alone"]) watch.probed(id, "none");
    }
  };
  return { clock, router, intake, watch, events, kinds, runSilent };
}

test("verdicts reach the router as inputs, the log and the counters, each once", () => {
  const { clock, router, watch, events, kinds, runSilent } = watchUnderTest();
  runSilent(3 * HANG_DEFAULTS.silentMicros, false);
  assert.deepEqual(kinds.filter((kind) => kind === "endpoint-suspended").length, 3);
  assert.deepEqual(
    router.endpointRows(clock.at).map(({ standing }) => standing),
    ["hung", "hung", "hung"],
  );
  assert.deepEqual([watch.isHung("alone"), watch.isHung("nobody")], [true, false]);
  for (let i = 0; i < 3; i++) watch.probed("alone", "moving");
  assert.deepEqual(watch.counts, { silent: 3, stalled: 0, resumed: 1, standstills: 0 });
  assert.equal(watch.isHung("alone"), false);
  assert.deepEqual(
    events.map(({ kind, endpoint }) => [kind, endpoint]),
    [
      ["endpoint-hung", "rank-0"],
      ["endpoint-hung", "rank-1"],
      ["endpoint-hung", "alone"],
      ["endpoint-returning", "alone"],
    ],
  );
});

test("a byte from one rank is a sign of life of the server of all of them, and of no other", () => {
  const { watch, runSilent } = watchUnderTest();
  runSilent(3 * HANG_DEFAULTS.silentMicros, true);
  assert.deepEqual([watch.isHung("rank-0"), watch.isHung("rank-1"), watch.isHung("alone")], [false, false, true]);
});

test("a gateway that stood still judges nobody by it, whoever is the first to run after it; an engine that hung meanwhile is found", (t) => {
  for (const first of ["sweep", "probe", "timer"]) {
    t.mock.timers.enable({ apis: ["setInterval"] });
    const { clock, watch, events, kinds } = watchUnderTest();
    watch.start();
    /** A sweep in which streams that have begun wait since a time, and a probe that times out. */
    const runs = (since: number): void => {
      watch.sweepBegins();
      watch.waits("alone", "begun", since);
      watch.sweepEnds();
      watch.probed("alone", "none");
    };
    for (let i = 0; i < 3; i++) {
      clock.at += SECOND;
      t.mock.timers.tick(1_000);
      watch.probed("alone", "static");
    }
    clock.at += 60 * SECOND;
    if (first === "timer") t.mock.timers.tick(250);
    else if (first === "probe") watch.probed("alone", "none");
    runs(clock.at - 60 * SECOND);
    assert.equal(watch.stoodStillUntil, clock.at, first);
    assert.deepEqual([kinds.includes("endpoint-suspended"), watch.counts.standstills], [false, 1], first);
    assert.deepEqual(
      events.map(({ kind }) => kind),
      ["gateway-stood-still"],
    );
    for (let i = 0; i < 12; i++) {
      clock.at += SECOND / 2;
      t.mock.timers.tick(500);
      runs(watch.stoodStillUntil);
    }
    assert.equal(kinds.includes("endpoint-suspended"), true, first);
    watch.stop();
    t.mock.timers.reset();
  }
});

test("an endpoint that left and joined again is judged anew", () => {
  const { clock, intake, watch, runSilent } = watchUnderTest();
  runSilent(3 * HANG_DEFAULTS.silentMicros, false);
  intake.accept({ kind: "endpoint-left", at: clock.at, endpoint: "alone" });
  assert.equal(watch.isHung("alone"), false);
  const endpoint = { id: "alone", models: [], labels: {}, kvCapacityTokens: undefined, concurrencyMax: undefined };
  intake.accept({ kind: "endpoint-joined", at: clock.at, endpoint });
  watch.probed("alone", "none");
  watch.probed("alone", "none");
  assert.equal(watch.isHung("alone"), false);
});
