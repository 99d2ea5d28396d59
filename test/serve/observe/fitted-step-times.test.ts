import assert from "node:assert/strict";
import { test } from "node:test";
import { loadEngine } from "#config/engine-file.ts";
import { linearStepTimes } from "#config/linear-step-times.ts";
import { loadProfile } from "#config/profile-file.ts";
import type { StepTimes } from "#core/endpoint/step-times.ts";
import type { EngineConfig } from "#engine/config.ts";
import { staticTargets } from "#live/discovery/static.ts";
import { Intake } from "#live/base/intake.ts";
import { FittedStepTimes } from "#serve/observe/fitted-step-times.ts";
import { podStepTimes } from "#serve/endpoints/pod-step-times.ts";
import { Replay, routerOf } from "#shadow/recorded/replay.ts";
import { TraceDecoder } from "#trace/codec/decoder.ts";
import { LineEncoder } from "../../trace/line-encoder.ts";
import { requestOf } from "../../core/rollout/rollout-case.ts";
import { FleetUnderTest, until } from "../../live/discovery/fleet-under-test.ts";
import { StubEngine } from "../../live/discovery/stub-engine.ts";
import { HEADER } from "../../trace/trace-samples.ts";

const H100 = loadEngine("h100-llama-3.1-8b");
const TIMES = linearStepTimes(H100)!;

function scaled(engine: EngineConfig, factor: number): EngineConfig {
  const { stepTime } = engine;
  assert.ok(stepTime.kind === "coefficients");
  const times = Object.entries(stepTime).map(([key, value]): [string, unknown] => [
    key,
    typeof value === "number" ? value * factor : value,
  ]);
  return { ...engine, stepTime: Object.fromEntries(times) as unknown as typeof stepTime };
}

test("a fit reaches the keeper, the latest one where that comes later, and another one where it differs by a twentieth", () => {
  const got: StepTimes[] = [];
  const fitted = new FittedStepTimes();
  fitted.take(H100);
  fitted.attach({ setStepTimes: (times) => void got.push(times) });
  assert.deepEqual(got, [TIMES]);
  for (const factor of [1.02, 0.98, 1.04]) fitted.take(scaled(H100, factor));
  assert.equal(got.length, 1);
  fitted.take(scaled(H100, 1.1));
  assert.equal(got.length, 2);
  assert.ok(Math.abs(got[1]!.prefillTokenMicros / TIMES.prefillTokenMicros - 1.1) < 1e-9);
});

test("fitted times are inputs about endpoints whose source states none, those that join later included", async (t) => {
  const engines = await Promise.all([StubEngine.start(), StubEngine.start(), StubEngine.start()]);
  const [plain, own, later] = engines.map(({ url }) => url) as [string, string, string];
  const ownTimes = { ...TIMES, stepMicros: 1 };
  const fleet = new FleetUnderTest();
  t.after(() => fleet.keeper.stop());
  for (const engine of engines) t.after(() => engine.kill());
  const servers = [
    { url: plain, id: "plain" },
    { url: own, id: "own", stepTimes: ownTimes },
  ];
  fleet.keeper.setTargets("static", staticTargets(servers));
  await until("both joined", () => ["plain", "own"].every((id) => fleet.story(id).length > 0));
  fleet.keeper.setStepTimes(TIMES);
  fleet.keeper.setTargets("static", staticTargets([...servers, { url: later, id: "later" }]));
  await until("the third joined", () => fleet.story("later").length > 0);
  const known = new Map<string, StepTimes | undefined>();
  for (const input of fleet.inputs)
    if (input.kind === "endpoint-joined" || input.kind === "endpoint-changed")
      known.set(input.endpoint.id, input.endpoint.stepTimes);
  assert.deepEqual(Object.fromEntries(known), { plain: TIMES, own: ownTimes, later: TIMES });
  assert.deepEqual(
    [fleet.story("plain"), fleet.story("own")],
    [["endpoint-joined", "endpoint-changed"], ["endpoint-joined"]],
  );
});

test("predicted-latency decides by what was fitted from then on, and a replay decides the same", () => {
  const { spec } = loadProfile("gnomon-predicted");
  const header = { ...HEADER, router: { ...HEADER.router, profiles: { p: spec }, defaultProfile: "p" } };
  const intake = new Intake(routerOf(header));
  const encoder = new LineEncoder({ blockTokens: header.router.blockTokens });
  const decoder = new TraceDecoder(encoder.header(header));
  const replay = new Replay();
  replay.take({ kind: "run", header: decoder.header });
  const forecasts: number[] = [];
  intake.listen({
    accepted: (input, decision) => {
      replay.take(decoder.decode(encoder.record(input, decision)));
      if (decision?.kind === "routed") forecasts.push(decision.forecast!.ttftMicros);
    },
  });
  const endpoint = { id: "a", models: ["llama"], labels: {}, kvCapacityTokens: 500_000, concurrencyMax: undefined };
  const ask = (number: number) => {
    const request = { ...requestOf(number), model: "llama", promptTokens: 2_000, profile: "" };
    intake.accept({ kind: "request-arrived", at: number * 1_000_000, request });
    intake.accept({ kind: "request-finished", at: number * 1_000_000 + 1, requestId: request.id, ...REFUSED });
  };
  for (const id of ["a", "b"]) intake.accept({ kind: "endpoint-joined", at: 0, endpoint: { ...endpoint, id } });
  ask(1);
  for (const id of ["a", "b"])
    intake.accept({ kind: "endpoint-changed", at: 1_500_000, endpoint: { ...endpoint, id, stepTimes: TIMES } });
  ask(2);
  assert.notEqual(forecasts[0], forecasts[1]);
  const expected = TIMES.stepMicros + 2_000 * TIMES.prefillTokenMicros;
  assert.ok(Math.abs(forecasts[1]! - expected) < 0.1 * expected, `${forecasts[1]} of ${expected}`);
  const { decisions, differences, first } = replay.result();
  assert.deepEqual([decisions, differences, first?.what], [2, 0, undefined]);
});

const REFUSED = {
  outcome: "aborted",
  promptTokens: undefined,
  cachedTokens: undefined,
  outputTokens: undefined,
} as const;

test("a pod's label names its engine, of those that come with gnomon and no file; others have the configured one", () => {
  const a100 = linearStepTimes(loadEngine("a100-llama-3.1-8b"));
  const stepTimesOf = podStepTimes("h100-llama-3.1-8b");
  assert.deepEqual(stepTimesOf({ "gnomon/engine": "a100-llama-3.1-8b" }), a100);
  for (const name of ["", "../engines/a100-llama-3.1-8b.yaml", "unheard-of"])
    assert.deepEqual(stepTimesOf({ "gnomon/engine": name }), TIMES, name);
  assert.deepEqual(stepTimesOf({}), TIMES);
  assert.equal(podStepTimes(undefined)({}), undefined);
});
