import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { liveEngine } from "#cli/calibrate/live-engine.ts";
import { batchOf, longerPauses, shownSizes, togetherOf } from "#cli/calibrate/live-sizes.ts";
import { startEmulator } from "#emulator/server.ts";
import { engineDefaults } from "#engine/config.ts";

const STEP_TIME = {
  kind: "coefficients",
  baseMicros: 8_000,
  perPrefillTokenMicros: 150,
  perDecodeMicros: 20,
  perDecodeContextTokenMicros: 0,
  perPrefillPairMicros: 0,
} as const;

async function shown(t: TestContext, sizes: Parameters<typeof engineDefaults>[0]) {
  const engine = engineDefaults({ kvBlocks: 2_000, modelTokensMax: 5_000, stepTime: STEP_TIME, ...sizes });
  const emulator = await startEmulator({ host: "127.0.0.1", port: 0, model: "m", engine, timeScale: 1, seed: 1 });
  t.after(() => emulator.close());
  const { blockTokens = 0, kvBlocks = 0 } = await liveEngine(emulator.url, undefined);
  const cacheTokens = blockTokens * kvBlocks;
  return shownSizes({ url: emulator.url, apiKey: undefined, model: "m", modelTokensMax: 5_000, cacheTokens, seed: 3 });
}

test("answers show how many requests and how many tokens an engine computes in a step, and a note what they do not show", async (t) => {
  const [small, large] = await Promise.all([
    shown(t, { sequencesMax: 16, batchTokensMax: 1_024 }),
    shown(t, { sequencesMax: 256, batchTokensMax: 16_384 }),
  ]);
  const { notes, ...found } = small;
  assert.deepEqual(found, { sequencesMax: 16, batchTokensMax: 1_024 }, notes.join("\n"));
  assert.equal(large.sequencesMax, undefined);
  assert.match(large.notes[0]!, /at least 64; --sequences-max states it/);
  // One step had room for all of the prompt.
  assert.equal(large.batchTokensMax, 8_192);
});

test("a prompt takes as many steps as there are longer pauses between another answer's tokens", () => {
  const BEFORE = 10;
  for (const [usual, longer, parts] of [
    [5, 40, 4],
    [8, 30, 1],
    [5, 200, 16],
    [6, 15, 3],
  ] as const) {
    const times = [0];
    for (let i = 0; i < BEFORE; i++) times.push(times.at(-1)! + usual);
    const sentAt = times.at(-1)! + usual / 2;
    times.push(times.at(-1)! + usual);
    for (let i = 0; i < parts; i++) times.push(times.at(-1)! + longer);
    const firstAt = times.at(-1)! + 1;
    for (let i = 0; i < BEFORE; i++) times.push(times.at(-1)! + usual);
    assert.equal(longerPauses(times, sentAt, firstAt), parts);
    assert.equal(longerPauses(times, sentAt, times.at(-1)! + 1), undefined, "the other answer ended before");
  }
  assert.equal(longerPauses([0, 5, 10, 15, 20, 26, 31, 36], 16, 30), undefined, "no step is longer");
});

test("a power of two is taken where the steps allow one, else the least tokens that so many steps hold", () => {
  for (const power of [256, 512, 1_024, 2_048]) assert.equal(batchOf(4_096, 4_096 / power), power);
  assert.deepEqual([batchOf(4_096, 1), batchOf(2_744, 1), batchOf(4_096, 3)], [8_192, 4_096, 1_366]);
  // Three steps of 1,000 tokens and a rest.
  assert.equal(batchOf(3_000, 3), 1_024);
});

test("together are those who begin before the first of them ends, not those who follow it", () => {
  const wave = (begin: number, count: number) =>
    Array.from({ length: count }, (_, i): [number, number] => [begin + i / 10, begin + 400 + i / 10]);
  assert.equal(togetherOf([...wave(10, 16), ...wave(409.9, 16)]), 16);
  assert.equal(togetherOf(wave(10, 64)), 64);
});
