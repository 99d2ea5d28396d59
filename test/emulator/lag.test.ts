import assert from "node:assert/strict";
import { test } from "node:test";
import { engineDefaults } from "#engine/config.ts";
import { startEmulator } from "#emulator/server.ts";
import { isWhole, requestBytes, sendRaw } from "./raw-client.ts";
import { until } from "./until.ts";

const BLOCKED_MS = 120;

test("a server that gets no time reports how late its engine's steps came", async () => {
  const stepTime = { kind: "coefficients", baseMicros: 5_000, perPrefillTokenMicros: 0, perDecodeMicros: 0 } as const;
  const engine = engineDefaults({ kvBlocks: 100, modelTokensMax: 1_000, stepTime });
  const emulator = await startEmulator({ host: "127.0.0.1", port: 0, model: "m", engine, timeScale: 1, seed: 1 });
  try {
    assert.deepEqual(emulator.stats().lagMillis, { steps: 0, mean: 0, p99: 0, max: 0 });
    const body = { prompt: "p", max_tokens: 60, min_tokens: 60, ignore_eos: true, stream: true };
    const answer = sendRaw(emulator.port, requestBytes("POST", "/v1/completions", body), isWhole);
    await until("it runs", () => emulator.stats().lagMillis.steps > 0);
    const blockedUntil = performance.now() + BLOCKED_MS;
    while (performance.now() < blockedUntil);
    await answer;
    const { steps, mean, p99, max } = emulator.stats().lagMillis;
    // Steps that ended while nobody looked are caught up in one.
    assert.ok(steps > 0 && steps < 60, `${steps} steps`);
    assert.ok(max >= BLOCKED_MS - 10 && mean > 0 && mean <= max && p99 <= max, JSON.stringify({ mean, p99, max }));
  } finally {
    await emulator.close();
  }
});
