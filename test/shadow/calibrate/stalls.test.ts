import assert from "node:assert/strict";
import { test } from "node:test";
import { engineDefaults } from "#engine/config.ts";
import { randomFor } from "#core/base/random.ts";
import type { Stalls } from "#engine/step-drift.ts";
import type { Evidence, Served } from "#shadow/calibrate/evidence.ts";
import { forcedReplay } from "#shadow/calibrate/forced-replay.ts";
import { engineWith } from "#shadow/calibrate/parameters.ts";
import { stallsOf } from "#shadow/calibrate/stalls.ts";
import { stallDraw } from "#shadow/candidate/stall-draw.ts";

const MODEL = engineWith(engineDefaults({ kvBlocks: 4000, sequencesMax: 16, modelTokensMax: 4096 }), {
  delayMicros: 5000,
  baseMicros: 10_000,
  perPrefillTokenMicros: 20,
  perDecodeMicros: 400,
  perPrefillMicros: 0,
  perDecodeContextTokenMicros: 0,
  perPrefillPairMicros: 0,
});

/** 400 requests in 100 seconds, each of about a second, at one engine or two. */
function asked(endpoints: number): Evidence {
  const random = randomFor(3, 1);
  let at = 0;
  const rows = Array.from({ length: 400 }, (_, i): Served => {
    at += 1 + random.below(500_000);
    const promptTokens = 32 + random.below(900);
    const times = { cachedTokens: 0, ttftMicros: NaN, e2eMicros: NaN };
    const hashes = Int32Array.from({ length: 2 * Math.floor(promptTokens / 16) }, (_one, word) => i * 1000 + word);
    return {
      ...times,
      arrivalAt: at,
      endpoint: i % endpoints,
      promptTokens,
      outputTokens: 60 + random.below(60),
      ok: true,
      hashes,
    };
  });
  return { endpoints: ["a", "b"].slice(0, endpoints), rows, left: {} };
}

function seen(evidence: Evidence, stalls: Stalls | undefined): Evidence {
  const stepDrift = { windowMicros: 200_000_000, factors: Float64Array.of(1), stalls };
  const real = forcedReplay(evidence, { ...MODEL, stepDrift });
  return {
    ...evidence,
    rows: evidence.rows.map((row, i) => ({ ...row, ttftMicros: real.ttftMicros[i]!, e2eMicros: real.e2eMicros[i]! })),
  };
}

const found = (evidence: Evidence) => stallsOf(evidence, forcedReplay(evidence, MODEL));

test("stalls are found, as many and as long as they were, and what they took is reported row by row", () => {
  const at = Float64Array.from({ length: 12 }, (_, i) => 4_000_000 + 7_500_000 * i);
  const micros = Float64Array.from({ length: 12 }, (_, i) => 150_000 + 50_000 * (i % 5));
  const evidence = seen(asked(1), { at, micros });
  const { seen: told, decodeMicros, firstMicros } = found(evidence);
  assert.ok(told.count >= 10 && told.count <= 14, String(told.count));
  const total = told.micros.reduce((sum, one) => sum + one, 0);
  const real = micros.reduce((sum, one) => sum + one, 0);
  assert.ok(Math.abs(total / real - 1) < 0.2, `${total} of ${real}`);
  assert.ok(told.watchedMicros > 60e6 && told.watchedMicros < 110e6, String(told.watchedMicros));
  evidence.rows.forEach(({ ttftMicros, e2eMicros }, i) => {
    assert.ok(firstMicros[i]! <= ttftMicros && decodeMicros[i]! <= e2eMicros - ttftMicros);
  });
});

test("a machine without stalls has none, and one request that waits alone is none either", () => {
  assert.equal(found(seen(asked(1), undefined)).seen.count, 0);
  const clean = seen(asked(1), undefined);
  const rows = clean.rows.map((row, i) =>
    i % 50 === 20 ? { ...row, ttftMicros: row.ttftMicros + 400_000, e2eMicros: row.e2eMicros + 400_000 } : row,
  );
  assert.equal(found({ ...clean, rows }).seen.count, 0);
});

test("what two endpoints had at once is reported as shared", () => {
  const at = Float64Array.from({ length: 12 }, (_, i) => 4_000_000 + 7_500_000 * i);
  const { seen: told } = found(seen(asked(2), { at, micros: new Float64Array(12).fill(300_000) }));
  assert.ok(told.count >= 14 && told.shared > 0.7, JSON.stringify(told));
});

test("replicas draw as many as were seen, shared ones at once, others each at its own time", () => {
  const base = { windowMicros: 1e6, windows: [[0]], levelError: 0, delayError: 0, prefillError: 0 };
  const lengths = [100_000, 300_000];
  const draw = (shared: number, replica: number) => {
    const stalls = { watchedMicros: 100_000_000, count: 20, micros: lengths, shared };
    return stallDraw({ ...base, stalls }, 100_000_000, 7, replica)!;
  };
  const counts = Array.from({ length: 200 }, (_, r) => draw(0, r)(0).at.length);
  const mean = counts.reduce((sum, one) => sum + one, 0) / counts.length;
  const variance = counts.reduce((sum, one) => sum + (one - mean) ** 2, 0) / counts.length;
  assert.ok(Math.abs(mean - 20.5) < 1.5, String(mean));
  // Poisson's own, and as much again because 20 seen ones tell the rate no better.
  assert.ok(variance > 28 && variance < 56, String(variance));
  assert.deepEqual(draw(1, 3)(0), draw(1, 3)(1));
  assert.notDeepEqual(draw(0, 3)(0).at, draw(0, 3)(1).at);
  const { at, micros } = draw(0.5, 9)(0);
  for (let i = 1; i < at.length; i++) assert.ok(at[i]! > at[i - 1]! + micros[i - 1]!);
  assert.equal(
    stallDraw({ ...base, stalls: { watchedMicros: 1e6, count: 0, micros: [], shared: 0 } }, 1e6, 1, 1),
    undefined,
  );
});
