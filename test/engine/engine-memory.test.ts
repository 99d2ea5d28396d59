import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { engineDefaults } from "#engine/config.ts";
import { EngineMemory } from "#engine/engine-memory.ts";
import { Engine } from "#engine/engine.ts";

const REQUESTS = 120;

/** What became of drawn requests that share prefixes and fight for few blocks: a line for each token and admission. */
function outcomes(seed: number, kvBlocks: number, memory?: EngineMemory): string[] {
  const random = randomFor(seed, 0);
  const seen: string[] = [];
  const engine = new Engine(
    engineDefaults({ kvBlocks, modelTokensMax: 512, sequencesMax: 16, check: true }),
    {
      admitted: (at, { id }, cached) => seen.push(`${at} ${id} cached ${cached}`),
      token: (at, { id }, tokens) => seen.push(`${at} ${id} ${tokens}`),
      finished: (at, { id }) => seen.push(`${at} ${id} finished`),
    },
    memory,
  );
  let at = 0;
  for (let i = 0; i < REQUESTS; i++) {
    at += random.below(60_000);
    const family = random.below(6);
    const promptTokens = 16 + random.below(400);
    const hashes = Int32Array.from({ length: 2 * Math.floor(promptTokens / 16) }, (_, word) => 100 * family + word);
    const request = { id: `r${i}`, promptTokens, outputTokens: 1 + random.below(60), hashes, priority: 0 };
    engine.submit(at, { ...request, deadlineAt: undefined, cacheRead: true });
  }
  for (let next = engine.nextEventAt(); next !== undefined; next = engine.nextEventAt()) engine.advanceTo(next);
  return seen;
}

test("an engine does the same on memory that another one had, of the same size or not", () => {
  const memory = new EngineMemory();
  for (const [seed, kvBlocks] of [
    [1, 80],
    [2, 80],
    [3, 200],
    [4, 80],
  ] as const) {
    const seen = outcomes(seed, kvBlocks, memory);
    assert.ok(seen.length > REQUESTS);
    assert.deepEqual(seen, outcomes(seed, kvBlocks));
  }
});
