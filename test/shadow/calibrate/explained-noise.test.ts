import assert from "node:assert/strict";
import { test } from "node:test";
import { explainedNoise } from "#shadow/calibrate/explained-noise.ts";
import type { Evidence } from "#shadow/calibrate/evidence.ts";
import type { ForcedOutcome } from "#shadow/calibrate/forced-replay.ts";

const FIRST = { predictedMicros: [10_000, 20_000], laterMicros: [5_000, 8_000] };
const STALLS = { watchedMicros: 60_000_000, count: 40, micros: [80_000, 100_000, 200_000], shared: 0.5 };

/** Noise of rows whose first tokens came so much later than replayed. */
function noiseOf(laterMicros: number): ReturnType<typeof explainedNoise> {
  const replayed = Float64Array.from({ length: 50 }, (_, i) => 10_000 + 200 * i);
  const rows = Array.from(replayed, (micros) => ({ ok: true, ttftMicros: micros + laterMicros }));
  return explainedNoise({ rows } as unknown as Evidence, { ttftMicros: replayed } as ForcedOutcome, FIRST, STALLS);
}

test("where nothing is left to be explained, no stall stays, so that what calibrate writes can be read", () => {
  for (const later of [-3_000, 0]) {
    const { stalls, firstTokens } = noiseOf(later);
    assert.deepEqual([stalls.count, stalls.micros], [0, []], String(later));
    assert.ok(firstTokens!.laterMicros.every((micros) => micros === 0));
  }
});

test("noise is shortened to the part that was seen, and whole where that is more", () => {
  const { stalls } = noiseOf(1_000);
  assert.equal(stalls.count, 40);
  assert.ok(stalls.micros.every((micros, i) => micros > 0 && micros < STALLS.micros[i]!));
  assert.deepEqual(noiseOf(1_000_000).stalls, STALLS);
});
