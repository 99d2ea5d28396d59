import assert from "node:assert/strict";
import { test } from "node:test";
import { engineDefaults } from "#engine/config.ts";
import { parseResponse } from "./http-message.ts";
import { isWhole, requestBytes, sendRaw } from "./raw-client.ts";
import { readCapture, readCaptures, startAs } from "./captures.ts";
import { until } from "./until.ts";

/** An engine that stands still, as far as a test can see. */
const STILL = { kind: "coefficients", baseMicros: 1e12, perPrefillTokenMicros: 0, perDecodeMicros: 0 } as const;

test("a full queue refuses in the captured words, streams too, while health stays good", async () => {
  const engine = engineDefaults({ blockTokens: 32, kvBlocks: 2_048, sequencesMax: 8, stepTime: STILL });
  const emulator = await startAs("18102", { engine });
  try {
    // Eight run, twenty-four wait: the limit.
    void submit(emulator.port, "sk-test", 4, 8);
    await until("8 running", () => emulator.engine.gauges.running === 8);
    for (let i = 0; i < 24; i++) void submit(emulator.port, "sk-test");
    await until("24 waiting", () => emulator.engine.gauges.waiting === 24);
    for (const name of ["err_503_queue_full", "err_503_queue_full_stream", "health_while_queue_full"]) {
      await compare(emulator.port, name);
    }
    const page = parseResponse(await sendRaw(emulator.port, requestBytes("GET", "/metrics"), isWhole)).chunks[0] ?? "";
    assert.match(page, /admission_rejections_total\{model_name="tiny",reason="max_num_queued_reqs"\} 2\.0/);
    assert.match(page, /admission_rejections_total\{model_name="tiny",reason="max_num_queued_tokens"\} 0\.0/);
    assert.equal(emulator.stats().refused, 2);
  } finally {
    await emulator.close();
  }
});

test("a backlog of prompt tokens refuses in the captured words", async () => {
  const engine = engineDefaults({ blockTokens: 32, kvBlocks: 2_048, sequencesMax: 1, stepTime: STILL });
  const emulator = await startAs("18107", { engine });
  try {
    for (let i = 0; i < 4; i++) void submit(emulator.port, "", 1_500);
    await until("one running, two waiting, one refused", () => emulator.stats().refused === 1);
    assert.equal(emulator.engine.waitingTokens, 3_000);
    assert.equal(emulator.stats().inFlight, 3);
    await compare(emulator.port, "err_503_queued_tokens");
  } finally {
    await emulator.close();
  }
});

function submit(port: number, key: string, tokens = 4, n = 1): Promise<Buffer | undefined> {
  const body = { prompt: Array.from({ length: tokens }, (_, i) => i % 200), max_tokens: 2, n };
  const headers = key === "" ? [] : [`Authorization: Bearer ${key}`];
  return sendRaw(port, requestBytes("POST", "/v1/completions", body, headers), isWhole).catch(() => undefined);
}

async function compare(port: number, name: string): Promise<void> {
  const request = readCaptures().find((capture) => capture.name === name)?.request;
  assert.ok(request !== undefined, name);
  const answer = parseResponse(await sendRaw(port, request, isWhole));
  const real = parseResponse(readCapture(`${name}.http`));
  assert.equal(answer.statusLine, real.statusLine, name);
  assert.deepEqual(
    answer.headers.map(([key]) => key),
    real.headers.map(([key]) => key),
  );
  assert.deepEqual(answer.chunks, real.chunks);
}
