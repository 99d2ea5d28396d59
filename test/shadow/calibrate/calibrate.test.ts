import assert from "node:assert/strict";
import { test } from "node:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadEngine } from "#config/engine-file.ts";
import { randomFor } from "#core/base/random.ts";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import { calibrate, CannotIdentify } from "#shadow/calibrate/calibrate.ts";
import { engineText } from "#shadow/calibrate/engine-text.ts";
import type { Evidence, Served } from "#shadow/calibrate/evidence.ts";
import { forcedReplay } from "#shadow/calibrate/forced-replay.ts";
import { engineWith, PARAMETERS, type Parameters } from "#shadow/calibrate/parameters.ts";

const SIZES = engineDefaults({ kvBlocks: 3000, sequencesMax: 32, asyncScheduling: true });
const TRUE: Parameters = {
  delayMicros: 2500,
  baseMicros: 8000,
  perPrefillTokenMicros: 30,
  perDecodeMicros: 60,
  perPrefillMicros: 0,
  perDecodeContextTokenMicros: 0,
  perPrefillPairMicros: 0,
};

interface Traffic {
  readonly requests: number;
  readonly gapMicros: number;
  readonly promptTokens: (uniform: () => number) => number;
  readonly outputTokens: (uniform: () => number) => number;
}

const VARIED: Traffic = {
  requests: 260,
  gapMicros: 90_000,
  promptTokens: (uniform) => 32 + Math.floor(1500 * uniform() ** 2),
  outputTokens: (uniform) => 4 + Math.floor(120 * uniform()),
};

/** What two engines with these parameters would have shown of such traffic. A third of the prompts share a prefix. */
function evidenceFrom(truth: EngineConfig, traffic: Traffic, seed: number): Evidence {
  const random = randomFor(seed, 1);
  const uniform = () => random.below(1 << 20) / (1 << 20);
  let at = 0;
  const rows = Array.from({ length: traffic.requests }, (_, i): Served => {
    at += 1 + Math.floor(2 * traffic.gapMicros * uniform());
    const promptTokens = traffic.promptTokens(uniform);
    const shared = i % 3 === 0 ? Math.min(256, promptTokens) : 0;
    const hashes = new Int32Array(2 * Math.floor(promptTokens / truth.blockTokens));
    for (let block = 0; 2 * block < hashes.length; block++) {
      hashes[2 * block] = (block + 1) * truth.blockTokens <= shared ? 1 : 2 + i;
      hashes[2 * block + 1] = block;
    }
    const unknown = { cachedTokens: NaN, ttftMicros: NaN, e2eMicros: NaN };
    return {
      ...unknown,
      arrivalAt: at,
      endpoint: i % 2,
      promptTokens,
      outputTokens: traffic.outputTokens(uniform),
      ok: true,
      hashes,
    };
  });
  const blank = { endpoints: ["one", "two"], rows, left: {} };
  const seen = forcedReplay(blank, truth);
  return seenAs(blank, (i) => ({
    ttftMicros: seen.ttftMicros[i]!,
    e2eMicros: seen.e2eMicros[i]!,
    cachedTokens: seen.cachedTokens[i]!,
  }));
}

function seenAs(evidence: Evidence, change: (row: number) => Partial<Served>): Evidence {
  return { ...evidence, rows: evidence.rows.map((row, i) => ({ ...row, ...change(i) })) };
}

function reasonsOf(evidence: Evidence, fixed: Partial<Parameters> = {}): readonly string[] {
  try {
    calibrate(evidence, { sizes: SIZES, fixed });
  } catch (error) {
    if (error instanceof CannotIdentify) return error.reasons;
    throw error;
  }
  return [];
}

/** What several tests look at. */
const EVIDENCE = evidenceFrom(engineWith(SIZES, TRUE), VARIED, 1);
const FIT = calibrate(EVIDENCE, { sizes: SIZES });

test("known coefficients are found again, and the held-out requests predicted", () => {
  const { parameters, heldOut, caveats } = FIT;
  for (const name of PARAMETERS) {
    const tolerance = name === "delayMicros" || name === "perDecodeMicros" ? 0.1 : 0.02;
    assert.ok(Math.abs(parameters[name] - TRUE[name]) <= tolerance * TRUE[name], `${name} ${parameters[name]}`);
  }
  for (const metric of ["ttftMicros", "tpotMicros", "e2eMicros"] as const) {
    assert.ok(Math.abs(heldOut[metric]!.meanRelative) < 0.01, `${metric} ${heldOut[metric]!.meanRelative}`);
  }
  assert.deepEqual(caveats, []);
  assert.equal(heldOut.requests, 78);
});

test("what attention costs is found where it is there, and left out where it is not", () => {
  const truth = { ...TRUE, perDecodeContextTokenMicros: 0.5, perPrefillPairMicros: 0.02 };
  const { parameters } = calibrate(evidenceFrom(engineWith(SIZES, truth), VARIED, 2), { sizes: SIZES });
  assert.ok(Math.abs(parameters.perDecodeContextTokenMicros / 0.5 - 1) < 0.1, JSON.stringify(parameters));
  assert.ok(Math.abs(parameters.perPrefillPairMicros / 0.02 - 1) < 0.1, JSON.stringify(parameters));
  assert.equal(parameters.perPrefillMicros, 0);
});

test("pauses of a second in every thirtieth request hardly move the fit", () => {
  const paused = seenAs(EVIDENCE, (i) => {
    const { ttftMicros, e2eMicros } = EVIDENCE.rows[i]!;
    const pause = i % 30 === 7 ? 1_000_000 : 0;
    return i % 60 === 7
      ? { ttftMicros: ttftMicros + pause, e2eMicros: e2eMicros + pause }
      : { e2eMicros: e2eMicros + pause };
  });
  const { parameters } = calibrate(paused, { sizes: SIZES });
  assert.ok(Math.abs(parameters.baseMicros / TRUE.baseMicros - 1) < 0.1, JSON.stringify(parameters));
  assert.ok(
    Math.abs(parameters.perPrefillTokenMicros / TRUE.perPrefillTokenMicros - 1) < 0.15,
    JSON.stringify(parameters),
  );
});

test("the same evidence gives the same parameters, to the bit", () => {
  const evidence = evidenceFrom(engineWith(SIZES, TRUE), { ...VARIED, requests: 120 }, 4);
  assert.deepEqual(calibrate(evidence, { sizes: SIZES }), calibrate(evidence, { sizes: SIZES }));
});

test("what is judged has not seen the requests held out; what is shipped has", () => {
  const other = seenAs(EVIDENCE, (i) => (i < 182 ? {} : { ttftMicros: 1, e2eMicros: 2 * EVIDENCE.rows[i]!.e2eMicros }));
  const otherwise = calibrate(other, { sizes: SIZES });
  assert.deepEqual(otherwise.trained, FIT.trained, "the first part has the same error: the same fit");
  assert.ok(otherwise.heldOut.e2eMicros!.meanRelative < -0.4, "which does not foresee what comes later");
  assert.notDeepEqual(otherwise.parameters, FIT.parameters);
});

test("an engine that got faster after the first part is shipped nearer to what it is now", () => {
  const truth = engineWith(SIZES, TRUE);
  const slow = Float64Array.from({ length: 400 }, (_, w) => (w < 14 ? 1.2 : 1));
  const evidence = evidenceFrom({ ...truth, stepDrift: { windowMicros: 1_000_000, factors: slow } }, VARIED, 12);
  const split = evidence.rows[182]!.arrivalAt;
  assert.ok(split > 5e6 && split < 40e6, String(split));
  const { parameters, heldOut } = calibrate(evidence, { sizes: SIZES });
  const judged = TRUE.baseMicros * (1 + heldOut.tpotMicros!.meanRelative);
  const off = (micros: number) => Math.abs(micros / TRUE.baseMicros - 1);
  assert.ok(off(parameters.baseMicros) < off(judged), `${parameters.baseMicros}, judged ${judged}`);
});

test("the file that is written is read as the engine that was fitted, with its error in comments", () => {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-calibrate-"));
  try {
    const file = join(folder, "engine.yaml");
    const text = engineText(FIT, { traces: ["trace"], requests: 260, source: { runs: [] }, notes: [] });
    writeFileSync(file, text);
    const { stepTime, queueDelay, ...sizes } = loadEngine(file);
    const { stepTime: fitted, queueDelay: delay, ...rest } = FIT.engine;
    assert.deepEqual(sizes, rest);
    for (const [key, value] of Object.entries(fitted)) {
      const read = (stepTime as unknown as Record<string, unknown>)[key];
      if (typeof value !== "number") assert.equal(read, value);
      else assert.ok(Math.abs((read as number) - value) <= 1e-5 * value, key);
    }
    assert.ok(Math.abs(queueDelay.baseMicros / delay.baseMicros - 1) < 1e-5);
    assert.match(text, /^# Error on 78 held-out requests, mean: TTFT [+-]\d/m);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("what a trace cannot identify is refused, with the traffic that would identify it", () => {
  const truth = engineWith(SIZES, TRUE);
  const varied = evidenceFrom(truth, VARIED, 7);
  const alone = evidenceFrom(truth, { ...VARIED, requests: 200, gapMicros: 3_000_000 }, 8);
  const equal = evidenceFrom(truth, { ...VARIED, requests: 200, promptTokens: () => 200 }, 9);
  const cases: readonly (readonly [Evidence, RegExp])[] = [
    [{ ...varied, rows: varied.rows.slice(0, 20) }, /^expected 40 answered requests .* got 14; record for longer$/],
    [seenAs(varied, () => ({ ttftMicros: NaN, ok: false })), /"stream": true would$/],
    [evidenceFrom(truth, { ...VARIED, requests: 200, outputTokens: () => 1 }, 10), /longer answers would show/],
    [alone, /^baseMicros and perDecodeMicros: .* sometimes one and sometimes many/],
    [seenAs(varied, () => ({ cachedTokens: NaN })), /--enable-prompt-tokens-details/],
    [
      { ...equal, rows: equal.rows.map((row) => ({ ...row, cachedTokens: 0 })) },
      /^delayMicros and perPrefillTokenMicros: /,
    ],
  ];
  for (const [evidence, said] of cases) {
    const reasons = reasonsOf(evidence);
    assert.ok(
      reasons.some((reason) => said.test(reason)),
      `${said}: ${reasons.join("; ") || "nothing refused"}`,
    );
  }
});

test("a parameter known from elsewhere lifts the refusal, and is kept", () => {
  const alone = evidenceFrom(engineWith(SIZES, TRUE), { ...VARIED, requests: 200, gapMicros: 3_000_000 }, 8);
  const { parameters, errors } = calibrate(alone, { sizes: SIZES, fixed: { perDecodeMicros: 60 } });
  assert.equal(parameters.perDecodeMicros, 60);
  assert.equal(errors.perDecodeMicros, undefined);
  assert.ok(Math.abs(parameters.baseMicros / TRUE.baseMicros - 1) < 0.02, JSON.stringify(parameters));
});

test("a trace that never saw an engine at rest is reported as such", () => {
  const crowded = { ...VARIED, requests: 260, gapMicros: 4_000 };
  const { caveats } = calibrate(evidenceFrom(engineWith(SIZES, TRUE), crowded, 11), { sizes: SIZES });
  assert.match(caveats.join(), /Trust this under load only/);
});
