import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import type { FaultEvent } from "#live/log/fault-log.ts";
import { type LastingFault, LastingFaults } from "#live/keeper/lasting-faults.ts";
import { UnsureForecasts } from "#live/keeper/unsure-forecasts.ts";
import { UnservedEndpoints } from "#live/keeper/unserved-endpoints.ts";
import { Intake } from "#live/base/intake.ts";
import { forecastsOff, withoutEvidence } from "#serve/observe/lasting.ts";
import { request } from "../../core/state.ts";

const MINUTE = 60 * MICROS_PER_SECOND;

function watching(faults: (at: number) => readonly LastingFault[]) {
  const events: FaultEvent[] = [];
  let at = 0;
  const watch = new LastingFaults({ faults, report: (event) => void events.push(event), now: () => at });
  watch.stop();
  return {
    at: (minutes: number): FaultEvent[] => {
      at = minutes * MINUTE;
      events.length = 0;
      watch.look();
      return [...events];
    },
  };
}

test("a fault is one line once it has gone on for long, and another one where it begins again", () => {
  let goesOn = true;
  const fault = { kind: "forecasts-off", key: "e2e", detail: "d", done: "n", holdMicros: 30 * MINUTE } as const;
  const { at } = watching(() => (goesOn ? [fault] : []));
  assert.deepEqual(at(0), []);
  assert.deepEqual(at(29), []);
  assert.deepEqual(at(31), [{ kind: "forecasts-off", detail: "d", done: "n", figures: { forSeconds: 31 * 60 } }]);
  assert.deepEqual(at(90), [], "what goes on is not said again");
  goesOn = false;
  assert.deepEqual(at(91), []);
  goesOn = true;
  assert.deepEqual(at(92), []);
  assert.equal(at(123).length, 1);
});

test("forecasts that most decisions are made without are a line after half an hour, and not while nobody asks", () => {
  const counts = { placed: 0, unsure: 0 };
  const unsure = new UnsureForecasts(() => counts);
  const { at } = watching(() => unsure.faults());
  const decide = (count: number, reason: string): void => {
    counts.placed += count;
    if (reason === "forecast-unsure") counts.unsure += count;
  };
  decide(10, "forecast-unsure");
  decide(12, "predicted-latency");
  assert.deepEqual([...at(0), ...at(40)], [], "fewer than half");
  decide(13, "forecast-unsure");
  assert.deepEqual([...at(41), ...at(70)], []);
  assert.deepEqual(
    at(72).map(({ kind }) => kind),
    ["forecasts-unsure"],
  );
  decide(1, "only");
  assert.deepEqual([...at(73), ...at(110)], []);
});

/** A profile whose filter leaves one endpoint alone: nothing is ever sent to "b". */
function unservedRig() {
  const { spec } = loadProfile("random");
  const router = new Router({
    seed: 1,
    profiles: { random: spec },
    defaultProfile: "random",
    index: new ApproximateIndex(),
    blockTokens: 16,
    staleAfterMicros: MICROS_PER_SECOND,
  });
  const intake = new Intake(router);
  const unserved = new UnservedEndpoints((at) => router.endpointRows(at));
  for (const id of ["a", "b"]) {
    const models = id === "a" ? ["m"] : ["other"];
    const endpoint = { id, models, labels: {}, kvCapacityTokens: undefined, concurrencyMax: undefined };
    intake.accept({ kind: "endpoint-joined", at: 0, endpoint });
  }
  let sent = 0;
  const ask = (model: string, count: number): void => {
    for (let i = 0; i < count; i++) {
      const id = `r${sent++}`;
      intake.accept({ kind: "request-arrived", at: 0, request: request({ id, model }) });
      const counts = { promptTokens: undefined, cachedTokens: undefined, outputTokens: undefined };
      intake.accept({ kind: "request-finished", at: 0, requestId: id, outcome: "ok", ...counts });
    }
  };
  return { ask, intake, ...watching((at) => unserved.faults(at)) };
}

test("an endpoint that is well and gets nothing while others get a thousand requests is named, after half an hour", () => {
  const { ask, at } = unservedRig();
  assert.deepEqual(at(0), []);
  ask("m", 999);
  assert.deepEqual([...at(1), ...at(40)], [], "too few to tell");
  ask("m", 1);
  assert.deepEqual(at(41), []);
  const [event] = at(72);
  assert.deepEqual([event?.kind, event?.endpoint], ["endpoint-gets-nothing", "b"]);
  assert.match(event!.detail, /none of the latest 1000 requests/);
  ask("other", 1);
  assert.deepEqual(at(140), [], "it got one, and is counted from there");
});

test("one that is cordoned gets nothing by right, and is counted from its return", () => {
  const { ask, intake, at } = unservedRig();
  at(0);
  intake.accept({ kind: "endpoint-cordoned", at: 0, endpoint: "b" });
  ask("m", 2_000);
  assert.deepEqual([...at(1), ...at(60)], []);
  intake.accept({ kind: "endpoint-uncordoned", at: 0, endpoint: "b" });
  assert.deepEqual([...at(61), ...at(120)], []);
  ask("m", 1_000);
  assert.deepEqual(at(121), []);
  assert.equal(at(152).length, 1);
});

test("forecasts are off beyond 30 %, either way, by metric", () => {
  const of = (modelError: Record<string, number>) => forecastsOff({ modelError } as never).map(({ detail }) => detail);
  assert.deepEqual(of({ ttft: 0.3, tpot: -0.3 }), []);
  assert.deepEqual(of({ ttft: 0.45, tpot: -0.31 }), [
    "simulated ttft is 45 % above what is observed",
    "simulated tpot is 31 % below what is observed",
  ]);
  assert.deepEqual(forecastsOff(undefined), []);
});

test("an arm without a request for an hour is named; a rollout that is paused waits by right", () => {
  const arms = { control: 10, other: 0 };
  let phase = "running";
  const { at } = watching(() =>
    withoutEvidence([
      { name: "r", phase, arms: Object.entries(arms).map(([name, requests]) => ({ name, total: { requests } })) },
    ] as never),
  );
  at(0);
  for (let minute = 10; minute < 60; minute += 10) {
    arms.control++;
    assert.deepEqual(at(minute), []);
  }
  arms.control++;
  assert.deepEqual(
    at(61).map(({ kind, detail }) => `${kind}: ${detail}`),
    ["rollout-without-evidence: arm other of r got no request: it finds nothing out like this"],
  );
  phase = "paused";
  assert.deepEqual([...at(70), ...at(200)], []);
});
