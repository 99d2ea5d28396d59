import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import {
  fitSteady,
  fitSteadyUnstated,
  STEADY_PARAMETERS,
  type SteadyParameter,
  type SteadyPoint,
  TooFewPoints,
} from "#shadow/calibrate/steady-fit.ts";
import { steadyProtocol } from "#shadow/calibrate/steady-protocol.ts";
import { replaySteady, type SteadyLoad } from "#shadow/calibrate/steady-replay.ts";

const SIZES = engineDefaults({ kvBlocks: 30_000, batchTokensMax: 8192, asyncScheduling: true });

function engineOf(parameters: Readonly<Record<SteadyParameter, number>>): EngineConfig {
  return {
    ...SIZES,
    stepTime: {
      kind: "coefficients",
      baseMicros: parameters.base,
      perPrefillTokenMicros: parameters.prefillToken,
      perPrefillMicros: parameters.prefill,
      perDecodeMicros: parameters.decode,
      decodesFree: parameters.decodesFree,
      perDecodeContextTokenMicros: parameters.contextToken,
      perPrefillPairMicros: parameters.prefillPair,
    },
    queueDelay: { baseMicros: parameters.delay, perPromptTokenMicros: 0 },
  };
}

function measured(engine: EngineConfig): SteadyPoint[] {
  return steadyProtocol(engine)!.map((point) => {
    const { users, requests, promptTokens, outputTokens, pauseMicrosMax } = point;
    const load: SteadyLoad = { kind: "users", count: users, requests, pauseMicrosMax };
    return { ...point, ...replaySteady(engine, load, (text) => ({ promptTokens, outputTokens, text }), 0) };
  });
}

test("the protocol identifies every coefficient and how steps are scheduled: whatever the engine has, the fit finds again", () => {
  const random = randomFor(11, 3);
  const between = (low: number, high: number) => low + (high - low) * random.next();
  for (let i = 0; i < 2; i++) {
    const truth = {
      base: between(2_000, 20_000),
      prefillToken: between(5, 100),
      prefill: between(500, 5_000),
      decode: between(100, 400),
      decodesFree: i === 0 ? 4 : 0,
      contextToken: between(0.02, 0.3),
      prefillPair: between(0.001, 0.01),
      delay: between(1_000, 10_000),
    };
    const engine = { ...engineOf(truth), asyncScheduling: i === 0 };
    const { fit, otherwiseOff } = fitSteadyUnstated(measured(engine), SIZES);
    assert.equal(fit.engine.asyncScheduling, i === 0);
    assert.ok(otherwiseOff > 2 * fit.off, `${otherwiseOff} and ${fit.off}`);
    assert.deepEqual(fit.assumed, {});
    for (const name of STEADY_PARAMETERS) {
      const off = truth[name] === 0 ? fit.parameters[name] : Math.abs(fit.parameters[name] / truth[name] - 1);
      assert.ok(
        off < (name === "prefill" || name === "delay" ? 0.1 : 0.05),
        `${name} ${fit.parameters[name]} for ${truth[name]}`,
      );
    }
    const other = { kind: "users", count: 20, requests: 100 } as const;
    const request = (text: number) => ({ promptTokens: 300 + 20 * (text % 30), outputTokens: 100, text });
    const real = replaySteady(engine, other, request, 0);
    const predicted = replaySteady(fit.engine, other, request, 0);
    assert.ok(Math.abs(predicted.tpotMicros / real.tpotMicros - 1) < 0.01);
    assert.ok(Math.abs(predicted.ttftMicros / real.ttftMicros - 1) < 0.03);
  }
});

test("a prompt like no other costs what one with a text of its own costs", () => {
  const engine = engineOf({
    base: 6_000,
    prefillToken: 25,
    prefill: 0,
    decode: 30,
    decodesFree: 0,
    contextToken: 0.1,
    prefillPair: 0.001,
    delay: 5_000,
  });
  const load = { kind: "users", count: 12, requests: 80 } as const;
  const timesWith = (textOf: (number: number) => number | undefined) =>
    replaySteady(engine, load, (i) => ({ promptTokens: 100 + 90 * (i % 20), outputTokens: 60, text: textOf(i) }), 4);
  assert.deepEqual(
    timesWith(() => undefined),
    timesWith((number) => number),
  );
  assert.ok(timesWith((number) => number % 5).ttftMicros < timesWith((number) => number).ttftMicros);
});

test("what points cannot separate is assumed and named, and one point alone is refused", () => {
  const truth = {
    base: 6_000,
    prefillToken: 25,
    prefill: 0,
    decode: 30,
    decodesFree: 0,
    contextToken: 0,
    prefillPair: 0,
    delay: 5_000,
  };
  const points = measured(engineOf(truth));
  const [short, middle, , many] = points as [SteadyPoint, SteadyPoint, SteadyPoint, SteadyPoint];
  const levels = fitSteady([short, many], SIZES);
  assert.deepEqual(Object.keys(levels.assumed), ["decodesFree", "delay", "contextToken", "prefillPair", "prefill"]);
  assert.ok(Math.abs(levels.parameters.base / 6_000 - 1) < 0.05);
  assert.deepEqual(Object.keys(fitSteady([short, middle], SIZES).assumed), [
    "decode",
    "decodesFree",
    "prefillPair",
    "prefill",
  ]);
  assert.throws(() => fitSteady([short], SIZES), TooFewPoints);
  assert.throws(() => fitSteady([short, short], SIZES), TooFewPoints);
});

test("the protocol fits the engine: no request is longer than its model, no user more than its batch, and the cache holds all of them", () => {
  for (const limits of [
    { modelTokensMax: 512, sequencesMax: 4 },
    { modelTokensMax: 131_072, sequencesMax: 1024 },
    { modelTokensMax: 8192, sequencesMax: 64, cacheTokens: 10_000 },
  ]) {
    const points = steadyProtocol(limits)!;
    for (const { users, promptTokens, outputTokens } of points) {
      assert.ok(users <= limits.sequencesMax && promptTokens + outputTokens <= limits.modelTokensMax);
      assert.ok(users * (promptTokens + outputTokens) <= (limits.cacheTokens ?? Infinity));
    }
    assert.ok(new Set(points.map(({ promptTokens }) => promptTokens)).size >= 3);
    assert.ok(new Set(points.map(({ users }) => users)).size >= 2);
  }
  assert.equal(steadyProtocol({ modelTokensMax: 256, sequencesMax: 8 }), undefined);
  assert.equal(steadyProtocol({ modelTokensMax: 8192, sequencesMax: 8, cacheTokens: 1500 }), undefined);
});
