import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { Emulator } from "#emulator/server.ts";
import { startAs } from "./captures.ts";
import { until } from "./until.ts";

const BODY = { model: "tiny", prompt: Array.from({ length: 70 }, (_, i) => 300 + i), max_tokens: 4, ignore_eos: true };

/** At the engine's own speed, so that what runs is seen to run: a step takes a millisecond. */
async function started(t: TestContext): Promise<Emulator> {
  const emulator = await startAs("18101", { sleepMode: true, timeScale: 1 });
  t.after(() => emulator.close());
  return emulator;
}

const post = (url: string, path: string, body?: object, signal?: AbortSignal) =>
  fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  });

interface Completion {
  readonly choices: { readonly finish_reason: string }[];
  readonly usage: { readonly completion_tokens: number; readonly prompt_tokens_details: { cached_tokens: number } };
}

const complete = async (url: string, more: object = {}) =>
  (await (await post(url, "/v1/completions", { ...BODY, ...more })).json()) as Completion;

const metric = async (url: string, pattern: RegExp) => pattern.exec(await (await fetch(`${url}/metrics`)).text())?.[1];
const WAITING = /vllm:num_requests_waiting\{.*\} (.*)/;

test("what comes while it sleeps waits, and goes on when it wakes", async (t) => {
  const { url } = await started(t);
  await post(url, "/sleep?level=0");
  const answer = complete(url);
  for (let waits: string | undefined = ""; waits !== "1.0";) waits = await metric(url, WAITING);
  assert.equal(await metric(url, /sleep_state="awake"\} (.*)/), "0.0");
  await post(url, "/wake_up");
  const { choices, usage } = await answer;
  assert.deepEqual([choices[0]?.finish_reason, usage.completion_tokens], ["length", 4]);
  assert.equal(await metric(url, /sleep_state="awake"\} (.*)/), "1.0");
});

test("falling asleep ends what runs with abort; from level 1 on nothing is cached any more", async (t) => {
  const { url } = await started(t);
  await complete(url);
  assert.equal((await complete(url)).usage.prompt_tokens_details.cached_tokens, 64);
  const long = complete(url, { max_tokens: 7_000 });
  for (let runs: string | undefined = ""; runs !== "1.0";) {
    runs = await metric(url, /vllm:num_requests_running\{.*\} (.*)/);
  }
  assert.deepEqual(await (await post(url, "/sleep?level=2")).json(), { status: "sleeping", level: 2 });
  assert.equal((await long).choices[0]?.finish_reason, "abort");
  assert.equal(await metric(url, /sleep_state="discard_all"\} (.*)/), "1.0");
  await post(url, "/wake_up");
  assert.equal((await complete(url)).usage.prompt_tokens_details.cached_tokens, 0);
});

test("kept, a request goes on where it was; waited for, it ends first", async (t) => {
  const { url, engine } = await started(t);
  const kept = complete(url, { max_tokens: 7_000 });
  await until("it runs", () => engine.gauges.running === 1);
  await post(url, "/sleep?level=0&mode=keep");
  const stood = engine.gauges.generationTokens;
  await new Promise((resolve) => setTimeout(resolve, 60));
  assert.equal(engine.gauges.generationTokens, stood, "it stands still");
  await post(url, "/wake_up");
  await until("it goes on", () => engine.gauges.generationTokens > stood + 10);
  await post(url, "/sleep?level=0&mode=keep");
  await post(url, "/sleep?level=1");
  const ended = await kept;
  assert.equal(ended.choices[0]?.finish_reason, "abort");
  assert.ok(ended.usage.completion_tokens > stood + 10, "with all its tokens");
  await post(url, "/wake_up");
  assert.equal((await complete(url)).usage.prompt_tokens_details.cached_tokens, 0);
  const { arrived } = engine.counts;
  const waitedFor = complete(url, { max_tokens: 200 });
  await until("it arrives", () => engine.counts.arrived > arrived);
  await post(url, "/sleep?mode=wait");
  assert.equal(engine.counts.inFlight, 0);
  assert.equal((await waitedFor).usage.completion_tokens, 200);
  await post(url, "/wake_up");
});

test("memory comes back by tags, and requests go on with the last of it", async (t) => {
  const { url } = await started(t);
  await post(url, "/sleep?level=1");
  const wake = async (query: string) => (await (await post(url, `/wake_up?${query}`)).json()) as { status: string };
  assert.equal((await wake("tags=weights")).status, "sleeping");
  const answer = complete(url);
  assert.equal((await wake("tags=scheduling")).status, "sleeping");
  assert.equal((await wake("tags=kv_cache&tags=scheduling")).status, "awake");
  assert.equal((await answer).usage.completion_tokens, 4);
});

test("a client that leaves while it sleeps leaves nothing, and a server that stops ends what waits", async (t) => {
  const emulator = await started(t);
  const { url } = emulator;
  await post(url, "/sleep?level=0");
  const leaving = new AbortController();
  const left = post(url, "/v1/completions", BODY, leaving.signal).catch(() => "left");
  for (let waits: string | undefined = ""; waits !== "1.0";) waits = await metric(url, WAITING);
  leaving.abort();
  assert.equal(await left, "left");
  for (let waits: string | undefined = ""; waits !== "0.0";) waits = await metric(url, WAITING);
  const asked = complete(url, { max_tokens: 7_000 });
  for (let waits: string | undefined = ""; waits !== "1.0";) waits = await metric(url, WAITING);
  await emulator.signalTerminate();
  assert.equal((await asked).choices[0]?.finish_reason, "abort");
  const { arrived, aborted, inFlight } = emulator.stats();
  assert.deepEqual([arrived, aborted, inFlight], [1, 1, 0]);
});

test("without the option there is no such route", async () => {
  const emulator = await startAs("18101");
  assert.equal((await post(emulator.url, "/sleep")).status, 404);
  await emulator.close();
});
