import assert from "node:assert/strict";
import { test } from "node:test";
import { engineDefaults } from "#engine/config.ts";
import type { KvTransferOptions } from "#emulator/kv-transfer/kv-transfer.ts";
import { type Emulator, startEmulator } from "#emulator/server.ts";
import { until } from "../until.ts";

/** 64 tokens a request; 1 ms a prompt token, so that a prompt that is computed shows. */
const STEP = { kind: "coefficients", baseMicros: 200, perPrefillTokenMicros: 1_000, perDecodeMicros: 0 } as const;
const engine = engineDefaults({ blockTokens: 16, kvBlocks: 64, modelTokensMax: 1_000, stepTime: STEP });
const PROMPT = Array.from({ length: 64 }, (_, i) => i + 1);
const PREFILL = { do_remote_decode: true, do_remote_prefill: false };

interface Answer {
  readonly choices: readonly { readonly text: string; readonly finish_reason: string }[];
  readonly usage: {
    readonly prompt_tokens: number;
    readonly prompt_tokens_details: { readonly cached_tokens: number };
  };
  readonly kv_transfer_params: Readonly<Record<string, unknown>> | null;
}

const start = (options: Partial<KvTransferOptions> | undefined): Promise<Emulator> =>
  startEmulator({
    host: "127.0.0.1",
    port: 0,
    model: "m",
    engine,
    timeScale: 1,
    seed: 1,
    ...(options && { kvTransfer: options }),
  });

async function pair(
  options: Partial<KvTransferOptions>,
  use: (prefill: Emulator, decode: Emulator) => Promise<void>,
): Promise<void> {
  const both = await Promise.all([start(options), start(options)]);
  try {
    await use(both[0], both[1]);
  } finally {
    await Promise.all(both.map((emulator) => emulator.close()));
  }
}

const post = ({ url }: Emulator, body: object, path = "/v1/completions") =>
  fetch(`${url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
async function complete(emulator: Emulator, body: object): Promise<Answer> {
  const answer = await post(emulator, { prompt: PROMPT, ignore_eos: true, ...body });
  assert.equal(answer.status, 200);
  return (await answer.json()) as Answer;
}
const prefill = (emulator: Emulator) =>
  complete(emulator, { max_tokens: 1, stream: false, kv_transfer_params: PREFILL });

test("a prompt computed at one engine is answered by another one: same text, nothing computed twice, nothing left", async () => {
  await pair({}, async (p, d) => {
    const { kv_transfer_params: params } = await prefill(p);
    assert.deepEqual(
      { ...params, remote_request_id: "", remote_engine_id: "" },
      {
        do_remote_prefill: true,
        do_remote_decode: false,
        remote_block_ids: [[1, 2, 3, 4]],
        remote_engine_id: "",
        remote_request_id: "",
        remote_host: "127.0.0.1",
        remote_port: p.port,
        tp_size: 1,
        dcp_size: 1,
        pp_size: 1,
        remote_num_tokens: 64,
        remote_blocks_expiry_time: null,
        transfer_mode: "pull",
      },
    );
    assert.deepEqual(p.stats().transfers, { holding: 1, taken: 0, expired: 0, fetched: 0, failed: 0 });
    assert.equal(p.stats().blocksUsed, 4);
    const shared = await complete(d, { max_tokens: 8, kv_transfer_params: params });
    assert.equal(shared.usage.prompt_tokens_details.cached_tokens, 64);
    // What one engine alone answers.
    const alone = await complete(d, { max_tokens: 8, kv_transfer_params: null, cache_salt: "other" });
    assert.equal(alone.usage.prompt_tokens_details.cached_tokens, 0);
    assert.equal(shared.choices[0]?.text, alone.choices[0]?.text);
    await until("it is given back", () => p.stats().transfers?.holding === 0);
    assert.deepEqual(p.stats().transfers, { holding: 0, taken: 1, expired: 0, fetched: 0, failed: 0 });
    assert.deepEqual(d.stats().transfers, { holding: 0, taken: 0, expired: 0, fetched: 1, failed: 0 });
    assert.deepEqual([p.stats().blocksUsed, d.stats().blocksUsed], [0, 0]);
    assert.equal(p.engine.gauges.prefixHitsTokens, 0);
  });
});

test("streams and chats are answered so too", async () => {
  await pair({}, async (p, d) => {
    const chat = { messages: [{ role: "user", content: "x".repeat(200) }] };
    const first = await post(p, { ...chat, max_tokens: 1, kv_transfer_params: PREFILL }, "/v1/chat/completions");
    const { kv_transfer_params } = (await first.json()) as Answer;
    assert.ok(kv_transfer_params !== null);
    const usage = { stream: true, stream_options: { include_usage: true } };
    const answer = await post(d, { ...chat, ...usage, max_tokens: 5, kv_transfer_params }, "/v1/chat/completions");
    const text = await answer.text();
    assert.match(text, /"cached_tokens":[5-9]\d/);
    assert.ok(text.endsWith("data: [DONE]\n\n"));
    assert.equal(d.stats().transfers?.fetched, 1);
  });
});

test("what the engine holds is given back when its lease runs out, and a fetch that comes later fails, as configured", async () => {
  for (const failurePolicy of ["fail", "recompute"] as const) {
    await pair({ leaseSeconds: 0.06, failurePolicy }, async (p, d) => {
      const { kv_transfer_params } = await prefill(p);
      await until("the lease runs out", () => p.stats().transfers?.expired === 1);
      assert.equal(p.stats().blocksUsed, 0);
      const late = await post(d, { prompt: PROMPT, max_tokens: 2, kv_transfer_params });
      assert.equal(late.status, failurePolicy === "fail" ? 500 : 200);
      if (failurePolicy === "fail")
        assert.match(await late.text(), /"message":"Internal server error","type":"InternalServerError"/);
      assert.equal(d.stats().transfers?.failed, 1);
      assert.equal(d.stats().inFlight, 0);
    });
  }
});

test("a fetch from an engine that is gone fails, in a stream as an event; a client that leaves lets go of what is held", async () => {
  await pair({}, async (p, d) => {
    const { kv_transfer_params } = await prefill(p);
    const left = new AbortController();
    const body = { prompt: PROMPT, max_tokens: 900, ignore_eos: true, stream: true, kv_transfer_params };
    const headers = { "content-type": "application/json" };
    const url = `${d.url}/v1/completions`;
    const asked = await fetch(url, { method: "POST", headers, body: JSON.stringify(body), signal: left.signal });
    left.abort();
    await assert.rejects(asked.text());
    await until("it is given back", () => p.stats().transfers?.holding === 0);
    const { kv_transfer_params: other } = await prefill(p);
    await p.close();
    const answer = await post(d, { ...body, kv_transfer_params: other });
    assert.match(await answer.text(), /Internal server error/);
    await until("nothing is left", () => d.stats().blocksUsed === 0);
  });
});

test("transfers fail on demand; a server without a connector ignores what is asked of one", async () => {
  await pair({}, async (p, d) => {
    assert.equal((await post(d, { failShare: 1 }, "/emulator/kv-transfer")).status, 200);
    const { kv_transfer_params } = await prefill(p);
    assert.equal((await post(d, { prompt: PROMPT, max_tokens: 2, kv_transfer_params })).status, 500);
    await until("it is given back", () => p.stats().transfers?.holding === 0);
    assert.equal((await post(d, { failShare: 2 }, "/emulator/kv-transfer")).status, 400);
  });
  const plain = await start(undefined);
  try {
    assert.equal((await prefill(plain)).kv_transfer_params, null);
    assert.equal(plain.stats().transfers, undefined);
  } finally {
    await plain.close();
  }
});

test("blocks of a request that is turned down are freed where they wait", async () => {
  await pair({}, async (p, d) => {
    const { kv_transfer_params: params } = await prefill(p);
    assert.equal(p.stats().transfers?.holding, 1);
    const refused = await post(d, { prompt: [0], max_tokens: 0, kv_transfer_params: params });
    assert.equal(refused.status, 400);
    await until("they are freed", () => p.stats().transfers?.holding === 0);
  });
});
