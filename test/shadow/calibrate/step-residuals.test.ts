import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { loadCalibratedEngine } from "#config/engine-file.ts";
import { randomFor } from "#core/base/random.ts";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import { calibrate } from "#shadow/calibrate/calibrate.ts";
import { engineText } from "#shadow/calibrate/engine-text.ts";
import type { StepDrift } from "#engine/step-drift.ts";
import type { Evidence, Served } from "#shadow/calibrate/evidence.ts";
import { forcedReplay } from "#shadow/calibrate/forced-replay.ts";
import { engineWith, type Parameters } from "#shadow/calibrate/parameters.ts";
import { type FitFacts, stepResidualsOf } from "#shadow/calibrate/step-residuals.ts";

const SIZES = engineDefaults({ kvBlocks: 3000, sequencesMax: 32 });
const TRUE: Parameters = {
  delayMicros: 2500,
  baseMicros: 8000,
  perPrefillTokenMicros: 30,
  perDecodeMicros: 60,
  perPrefillMicros: 0,
  perDecodeContextTokenMicros: 0,
  perPrefillPairMicros: 0,
};
const MODEL = engineWith(SIZES, TRUE);

/** What two such engines would have shown of 400 requests in 40 seconds. */
function evidenceFrom(engine: EngineConfig): Evidence {
  const random = randomFor(5, 1);
  let at = 0;
  const rows = Array.from({ length: 400 }, (_, i): Served => {
    at += 1 + random.below(200_000);
    const promptTokens = 32 + random.below(900);
    const hashes = Int32Array.from({ length: 2 * Math.floor(promptTokens / 16) }, (_one, word) => i * 1000 + word);
    return {
      arrivalAt: at,
      endpoint: i % 2,
      promptTokens,
      outputTokens: 4 + random.below(120),
      cachedTokens: NaN,
      ttftMicros: NaN,
      e2eMicros: NaN,
      ok: true,
      hashes,
    };
  });
  const blank = { endpoints: ["one", "two"], rows, left: {} };
  const seen = forcedReplay(blank, engine);
  const shown = rows.map((row, i) => ({
    ...row,
    ttftMicros: seen.ttftMicros[i]!,
    e2eMicros: seen.e2eMicros[i]!,
    cachedTokens: seen.cachedTokens[i]!,
  }));
  return { ...blank, rows: shown };
}

function facts(evidence: Evidence, errors: FitFacts["errors"]): FitFacts {
  const replayed = (drift: StepDrift | undefined) => {
    assert.equal(drift, undefined, "one run is compared with no other");
    return forcedReplay(evidence, MODEL);
  };
  return { parameters: TRUE, errors, heldOutError: NaN, betweenRuns: undefined, speeds: [0], replayed };
}

function residuals(engine: EngineConfig) {
  const evidence = evidenceFrom(engine);
  const found = stepResidualsOf(evidence, facts(evidence, { delayMicros: 50 }));
  assert.ok(found !== undefined);
  return found;
}

test("a model that is right leaves nothing to chance", () => {
  const { windows, levelError, delayError } = residuals(MODEL);
  assert.equal(windows.length, 2);
  assert.ok(windows.flat().every((value) => value === 0));
  assert.equal(levelError, 0);
  assert.equal(delayError, 0.02);
});

test("an engine that is slower throughout is that much slower in every window, and well known", () => {
  const slower = residuals({ ...MODEL, stepDrift: { windowMicros: 1e6, factors: Float64Array.of(1.1) } });
  // Slower steps also put more requests into each, so the ratio is a little above that of the steps.
  for (const value of slower.windows.flat()) assert.ok(value > 0.9 * Math.log(1.1) && value < 1.6 * Math.log(1.1));
  assert.ok(slower.levelError < 0.01, String(slower.levelError));
});

test("slow swings are found where they were, and their mean is kept", () => {
  const swing = { windowMicros: 10_000_000, factors: Float64Array.of(1, 1.2) };
  const { windows, windowMicros } = residuals({ ...MODEL, stepDrift: swing });
  const [first] = windows;
  assert.ok(first !== undefined);
  const inSwing = (w: number) => Math.floor(((w + 0.5) * windowMicros) / swing.windowMicros) % 2 === 1;
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const gap = mean(first.filter((_, w) => inSwing(w))) - mean(first.filter((_, w) => !inSwing(w)));
  assert.ok(Math.abs(gap / Math.log(1.2) - 1) < 0.35, String(gap));
  assert.ok(Math.abs(mean(windows.map(mean)) / (Math.log(1.2) / 2) - 1) < 0.35);
});

test("a short trace gives no residuals, and a file keeps those that were found", () => {
  const evidence = evidenceFrom(MODEL);
  const short = { ...evidence, rows: evidence.rows.slice(0, 30) };
  assert.equal(stepResidualsOf(short, facts(short, {})), undefined);
  const drift = { windowMicros: 3e6, factors: Float64Array.of(1, 1.15, 0.9) };
  // What the engine has none of is stated: to look for it takes half of a fit.
  const fixed = { perPrefillMicros: 0, perDecodeContextTokenMicros: 0, perPrefillPairMicros: 0 };
  const calibration = calibrate(evidenceFrom({ ...MODEL, stepDrift: drift }), { sizes: SIZES, fixed });
  assert.ok(calibration.residuals !== undefined && calibration.residuals.windows[0]!.length >= 8);
  const folder = mkdtempSync(join(tmpdir(), "gnomon-residuals-"));
  try {
    const file = join(folder, "engine.yaml");
    writeFileSync(file, engineText(calibration, { traces: ["a"], requests: 400, source: { runs: [] }, notes: [] }));
    assert.deepEqual(loadCalibratedEngine(file).residuals, calibration.residuals);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("answers that came in one go after a stall are bounded, and the file that has them can be read", () => {
  const { rows, ...rest } = evidenceFrom(MODEL);
  const bunched = rows.map((row, i) =>
    i >= 100 && i < 150 ? { ...row, e2eMicros: row.ttftMicros + 4 * row.outputTokens } : row,
  );
  const evidence = { ...rest, rows: bunched };
  const { windows } = stepResidualsOf(evidence, facts(evidence, {}))!;
  const lowest = Math.min(...windows.flat());
  assert.ok(lowest < -1 && lowest >= -3, String(lowest));
});
