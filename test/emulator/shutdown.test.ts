import assert from "node:assert/strict";
import { test } from "node:test";
import { engineDefaults } from "#engine/config.ts";
import type { Emulator } from "#emulator/server.ts";
import { readCapture, startAs } from "./captures.ts";
import { eventData, parseResponse, type HttpMessage } from "./http-message.ts";
import { isWhole, requestBytes, sendRaw } from "./raw-client.ts";
import { shapeOf } from "./shape.ts";
import { until } from "./until.ts";

/** Ten milliseconds a token: long enough to be interrupted. */
const STEADY = { kind: "coefficients", baseMicros: 10_000, perPrefillTokenMicros: 0, perDecodeMicros: 0 } as const;
const engine = engineDefaults({ blockTokens: 32, kvBlocks: 2_048, stepTime: STEADY });
const IDS = { prompt: [1, 2, 3], max_tokens: 400, ignore_eos: true };

test("asked to terminate, a server ends streams and bodies with finish_reason abort and closes its port", async () => {
  const emulator = await startAs("18109", { engine, timeScale: 1 });
  const stream = ask(emulator, { ...IDS, stream: true });
  const body = ask(emulator, IDS);
  await until("tokens flow", () => emulator.stats().arrived === 2 && emulator.engine.gauges.generationTokens >= 4);
  const stopped = emulator.signalTerminate();
  assertSame(await ask(emulator, { prompt: "text", max_tokens: 2 }), captured("new_request_while_draining"));
  const events = eventData(await stream);
  assert.equal(events.at(-1), "[DONE]");
  const last = JSON.parse(events.at(-2) ?? "") as { choices: { finish_reason: string }[]; system_fingerprint: string };
  assert.equal(last.choices[0]?.finish_reason, "abort");
  assert.match(last.system_fingerprint, /^vllm-0\.32\.0-/);
  const whole = await body;
  assert.equal(whole.status, 200);
  const json = JSON.parse(whole.chunks[0] ?? "") as { choices: { finish_reason: string; text: string }[] };
  assert.equal(json.choices[0]?.finish_reason, "abort");
  await stopped;
  await assert.rejects(ask(emulator, IDS), /ECONNREFUSED/);
  const { arrived, aborted, inFlight, blocksUsed } = emulator.stats();
  assert.deepEqual({ arrived, aborted, inFlight }, { arrived: 2, aborted: 2, inFlight: 0 });
  assert.ok(blocksUsed <= 2);
  await emulator.close();
});

test("asked to drain, a server lets answers end, looks healthy, fails texts and answers token ids with nothing", async () => {
  const emulator = await startAs("18109", { engine, timeScale: 1, shutdownTimeoutSeconds: 20 });
  const stream = ask(emulator, { ...IDS, max_tokens: 80, stream: true });
  await until("tokens flow", () => emulator.engine.gauges.generationTokens >= 2);
  const stopped = emulator.signalTerminate();
  assertSame(await ask(emulator, { prompt: "text", max_tokens: 2 }), captured("new_request_while_draining"));
  assertSame(await post(emulator, "/tokenize", { prompt: "text" }), captured("tokenize_while_draining"));
  assertShape(await get(emulator, "/v1/models"), captured("models_while_draining"));
  assertShape(await ask(emulator, IDS), captured("new_request_ids_while_draining"));
  for (const path of ["/health", "/metrics"]) assert.equal((await get(emulator, path)).status, 200, path);
  const events = eventData(await stream);
  const last = JSON.parse(events.at(-2) ?? "") as { choices: { finish_reason: string }[] };
  assert.equal(last.choices[0]?.finish_reason, "length");
  await stopped;
  await assert.rejects(ask(emulator, IDS), /ECONNREFUSED/);
  await emulator.close();
});

test("a drain longer than its time ends as a termination does", async () => {
  const emulator = await startAs("18109", { engine, timeScale: 1, shutdownTimeoutSeconds: 0.1 });
  const stream = ask(emulator, { ...IDS, stream: true });
  await until("tokens flow", () => emulator.engine.gauges.generationTokens >= 2);
  await emulator.signalTerminate();
  assert.match(eventData(await stream).at(-2) ?? "", /"finish_reason":"abort"/);
  await emulator.close();
});

test("when the engine dies, streams get an error event and [DONE], bodies a 500, and the port closes", async () => {
  const emulator = await startAs("18107", { engine, timeScale: 1 });
  const chat = { messages: [{ role: "user", content: "hi" }], max_tokens: 400, ignore_eos: true, stream: true };
  const streams = [post(emulator, "/v1/chat/completions", chat), ask(emulator, { ...IDS, stream: true })];
  const body = ask(emulator, IDS);
  await until("tokens flow", () => emulator.stats().arrived === 3 && emulator.engine.gauges.generationTokens >= 4);
  const dead = emulator.killEngine();
  for (const [index, name] of ["chat_stream", "stream"].entries()) {
    const answer = await (streams[index] as Promise<HttpMessage>);
    const real = readCapture(`engine_crash_${name}.tail.http`).toString();
    const ending = real.slice(real.indexOf('data: {"error"'));
    assert.equal(answer.chunks.slice(-2).join(""), ending.replace(/\r\n[0-9a-f]+\r\n/g, "").replace(/\r\n.*$/s, ""));
  }
  assertSame(await body, parseResponse(readCapture("engine_crash_nonstream.tail.http")));
  assertSame(await ask(emulator, IDS), parseResponse(readCapture("request_engine_dead.http")));
  await dead;
  await assert.rejects(ask(emulator, IDS), /ECONNREFUSED/);
  const { arrived, failed, inFlight } = emulator.stats();
  assert.deepEqual({ arrived, failed, inFlight }, { arrived: 3, failed: 3, inFlight: 0 });
  await emulator.close();
});

function captured(name: string): HttpMessage {
  return parseResponse(readCapture(`sigterm_shutdown_timeout_20_${name}.http`));
}

async function post(emulator: Emulator, path: string, body: unknown): Promise<HttpMessage> {
  return parseResponse(await sendRaw(emulator.port, requestBytes("POST", path, body), isWhole));
}

function ask(emulator: Emulator, body: unknown): Promise<HttpMessage> {
  return post(emulator, "/v1/completions", body);
}

async function get(emulator: Emulator, path: string): Promise<HttpMessage> {
  return parseResponse(await sendRaw(emulator.port, requestBytes("GET", path), isWhole));
}

function assertSame(answer: HttpMessage, real: HttpMessage): void {
  assert.equal(answer.statusLine, real.statusLine);
  assert.deepEqual(
    answer.headers.map(([name]) => name),
    real.headers.map(([name]) => name),
  );
  assert.deepEqual(answer.chunks, real.chunks);
}

function assertShape(answer: HttpMessage, real: HttpMessage): void {
  assert.equal(answer.statusLine, real.statusLine);
  assert.deepEqual(shapeOf(JSON.parse(answer.chunks[0] ?? "")), shapeOf(JSON.parse(real.chunks[0] ?? "")));
}
