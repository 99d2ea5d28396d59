import assert from "node:assert/strict";
import { test } from "node:test";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import { replicaEngines } from "#shadow/candidate/replica.ts";
import { roundSpeeds, steadyChance, type TimedPoint } from "#shadow/calibrate/steady-chance.ts";
import { fitSteady } from "#shadow/calibrate/steady-fit.ts";
import { steadyProtocol } from "#shadow/calibrate/steady-protocol.ts";
import { replaySteady } from "#shadow/calibrate/steady-replay.ts";

const POINT_MICROS = 4_000_000;
const ROUNDS = 4;

const TRUTH = {
  base: 9_000,
  prefillToken: 40,
  prefill: 1_500,
  decode: 350,
  decodesFree: 0,
  contextToken: 0.3,
  prefillPair: 0.004,
  delay: 6_000,
};
const ENGINE = engineDefaults({
  kvBlocks: 30_000,
  sequencesMax: 16,
  asyncScheduling: true,
  stepTime: {
    kind: "coefficients",
    baseMicros: TRUTH.base,
    perPrefillTokenMicros: TRUTH.prefillToken,
    perPrefillMicros: TRUTH.prefill,
    perDecodeMicros: TRUTH.decode,
    perDecodeContextTokenMicros: TRUTH.contextToken,
    perPrefillPairMicros: TRUTH.prefillPair,
  },
  queueDelay: { baseMicros: TRUTH.delay, perPromptTokenMicros: 0 },
});

/** The engine with steps so many times as long. */
function at(factor: number): EngineConfig {
  return {
    ...ENGINE,
    stepDrift: { windowMicros: Number.MAX_SAFE_INTEGER, factors: Float64Array.of(factor) },
  };
}

/** The protocol on an engine whose steps take so many times as long at a time between 0 and 1. */
function measured(speedAt: (time: number) => number, rounds = ROUNDS, turning = true): TimedPoint[] {
  const protocol = steadyProtocol(ENGINE)!;
  return Array.from({ length: rounds }, (_, round) =>
    (turning && round % 2 === 1 ? protocol.toReversed() : protocol).map((point, i): TimedPoint => {
      const { users, requests, promptTokens, outputTokens, pauseMicrosMax } = point;
      const number = round * protocol.length + i;
      const times = replaySteady(
        at(speedAt((number + 0.5) / (rounds * protocol.length))),
        { kind: "users", count: users, requests, pauseMicrosMax },
        (text) => ({ promptTokens, outputTokens, text }),
        0,
      );
      const beganMicros = number * POINT_MICROS;
      return { ...point, ...times, round, beganMicros, endedMicros: beganMicros + POINT_MICROS };
    }),
  ).flat();
}

const LOAD = { kind: "users", count: 8, requests: 48, pauseMicrosMax: 300_000 } as const;
const timesOf = (engine: EngineConfig) =>
  replaySteady(engine, LOAD, (text) => ({ promptTokens: 500, outputTokens: 90, text }), 0);

test("an engine that slows down by a tenth while it is measured is fitted at its mean speed, and intervals state the drift", () => {
  const points = measured((time) => 0.95 + 0.1 * time);
  const fit = fitSteady(points, ENGINE);
  const [predicted, mean] = [timesOf(fit.engine), timesOf(ENGINE)];
  assert.ok(Math.abs(predicted.tpotMicros / mean.tpotMicros - 1) < 0.01, `${predicted.tpotMicros}`);
  assert.ok(Math.abs(predicted.ttftMicros / mean.ttftMicros - 1) < 0.03, `${predicted.ttftMicros}`);

  const { rounds, residuals } = steadyChance(points, fit)!;
  // Middles of four rounds lie three quarters of a tenth apart.
  assert.ok(Math.abs(rounds.at(-1)! - rounds[0]! - 0.075) < 0.01, rounds.join());
  assert.deepEqual(
    rounds,
    rounds.toSorted((a, b) => a - b),
  );
  const [windows] = residuals.windows as readonly [readonly number[]];
  assert.equal(windows.length, points.length);
  assert.ok(windows.at(-1)! - windows[0]! > 0.08);
  const drawn = Array.from({ length: 40 }, (_, i) =>
    timesOf(replicaEngines(fit.engine, { ...residuals, betweenRuns: undefined }, 1, i + 1, 60_000_000)(0)),
  )
    .map(({ tpotMicros }) => tpotMicros)
    .sort((a, b) => a - b);
  const [low, high] = [drawn[2]!, drawn[37]!];
  assert.ok(low < 0.98 * mean.tpotMicros && high > 1.02 * mean.tpotMicros, `${low} ${mean.tpotMicros} ${high}`);
  // Within the same hours another load may meet the speed of the beginning, or of the end.
  const session = residuals.betweenRuns!.session!;
  assert.ok(session > 0.065, `${session}`);
});

test("a steady engine has no drift, whatever it is", () => {
  const points = measured(() => 1.3, 2);
  const fit = fitSteady(points, ENGINE, TRUTH);
  const { rounds, residuals } = steadyChance(points, fit)!;
  assert.ok(rounds.every((level) => Math.abs(level) < 1e-9));
  assert.equal(residuals.levelError, 0);
  assert.equal(residuals.betweenRuns!.session, 0.06);
  assert.ok(residuals.windows.flat().every((level) => Math.abs(level) < 1e-9));
});

test("points measured in both orders do not take a drift for another point's coefficients", () => {
  const drift = (time: number) => 0.9 + 0.2 * time;
  const fits = [true, false].map((turning) => fitSteady(measured(drift, 2, turning), ENGINE, TRUTH));
  const truth = timesOf(ENGINE);
  const [turned, straight] = fits.map(({ engine }) => Math.abs(timesOf(engine).tpotMicros / truth.tpotMicros - 1));
  assert.ok(turned! < 0.01, `${turned}`);
  assert.ok(turned! < straight!, `${turned} ${straight}`);
});

test("one round shows nothing of a drift, and several show how well their mean is known", () => {
  const once = measured(() => 1, 1);
  assert.equal(steadyChance(once, fitSteady(once, ENGINE, TRUTH)), undefined);
  assert.ok(Number.isNaN(roundSpeeds(once).error));
  const short = roundSpeeds(measured((time) => (time < 0.5 ? 0.97 : 1.03), 2));
  const long = roundSpeeds(measured((time) => (Math.floor(8 * time) % 2 === 0 ? 0.97 : 1.03), 8));
  assert.ok(long.error < short.error / 2, `${long.error} ${short.error}`);
});
