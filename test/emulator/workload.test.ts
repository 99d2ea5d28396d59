import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { engineDefaults } from "#engine/config.ts";
import { startEmulator, type Emulator } from "#emulator/server.ts";
import { eventData, parseResponse, type HttpMessage } from "./http-message.ts";
import { isWhole, requestBytes, sendRaw } from "./raw-client.ts";
import { until } from "./until.ts";

const SEED = 20_261;
const BLOCK_TOKENS = 16;

function start(seed = 1, queuedRequestsMax = 1_000): Promise<Emulator> {
  const stepTime = { kind: "coefficients", baseMicros: 2_000, perPrefillTokenMicros: 2, perDecodeMicros: 20 } as const;
  const engine = engineDefaults({
    blockTokens: BLOCK_TOKENS,
    kvBlocks: 600,
    sequencesMax: 8,
    modelTokensMax: 2_048,
    stepTime,
    check: true,
  });
  return startEmulator({ host: "127.0.0.1", port: 0, model: "m", engine, timeScale: 20, seed, queuedRequestsMax });
}

test("whatever happens to requests, each is counted once, and in the end no block is held", async () => {
  const emulator = await start(1, 8);
  const random = randomFor(SEED, 0);
  const faults = [
    "",
    "",
    "",
    "",
    "cut=2",
    "truncate=1",
    "abort=3",
    "error=1",
    "status=500",
    "slow=1",
    "garbage",
    "stall=1",
  ];
  try {
    const all = Array.from({ length: 150 }, async (_, i) => {
      const stream = random.below(2) === 1;
      const n = 1 + random.below(3);
      const body = { prompt: "p".repeat(1 + random.below(3_000)), max_tokens: 1 + random.below(60), n, stream };
      const fault = faults[random.below(faults.length)] ?? "";
      const leaveAfterMs = random.below(4) === 0 || fault === "stall=1" ? random.below(40) : undefined;
      await sleep(random.below(60));
      const headers = fault === "" ? [] : [`x-emulator-fault: ${fault}`];
      await sendAndLeave(emulator, requestBytes("POST", "/v1/completions", body, headers), leaveAfterMs, i);
    });
    await Promise.all(all);
    await until("nothing in flight, no block held", () => {
      const { inFlight, blocksUsed } = emulator.stats();
      return inFlight === 0 && blocksUsed === 0;
    });
    const { arrived, finished, aborted, failed, refused } = emulator.stats();
    assert.equal(arrived, finished + aborted + failed + refused, `seed ${SEED}`);
    assert.ok(finished > 0 && aborted > 0, JSON.stringify(emulator.stats()));
    assert.deepEqual([emulator.engine.gauges.running, emulator.engine.gauges.waiting], [0, 0]);
    assert.equal(emulator.engine.waitingTokens, 0);
  } finally {
    await emulator.close();
  }
});

test("same prompt, same answer: on another server, under load, streamed or whole", async () => {
  const emulators = [await start(1), await start(2)] as const;
  try {
    const bodies = Array.from({ length: 12 }, (_, i) => ({ prompt: `question ${i}`, max_tokens: 40, n: 1 + (i % 2) }));
    const texts = await Promise.all(
      emulators.map((emulator) => Promise.all(bodies.map(async (body) => wholeTexts(await ask(emulator, body))))),
    );
    assert.deepEqual(texts[0], texts[1]);
    assert.ok(new Set(texts[0]?.map((one) => one[0])).size > 10);
    const streamed = await Promise.all(
      bodies.map(async (body) => streamTexts(await ask(emulators[0], { ...body, stream: true }))),
    );
    assert.deepEqual(streamed, texts[0]);
    const reseeded = await Promise.all(
      bodies.map(async (body) => wholeTexts(await ask(emulators[0], { ...body, seed: 5 }))),
    );
    assert.notDeepEqual(reseeded, texts[0]);
  } finally {
    await Promise.all(emulators.map((emulator) => emulator.close()));
  }
});

test("cached_tokens is what of the prompt earlier prompts and answers left in full blocks", async () => {
  const emulator = await start();
  try {
    const turns: { role: string; content: string }[] = [{ role: "system", content: "s".repeat(500) }];
    let known = 0;
    for (let turn = 0; turn < 5; turn++) {
      turns.push({ role: "user", content: `what about ${turn}?` });
      const { usage, choices } = await chat(emulator, { messages: turns, max_tokens: 50 + turn, ignore_eos: true });
      assert.equal(usage.prompt_tokens_details.cached_tokens, known - (known % BLOCK_TOKENS), `turn ${turn}`);
      turns.push({ role: "assistant", content: choices[0]?.message.content ?? "" });
      // The last generated token was never computed; the end of turn that follows it in the history is no hit either.
      known = usage.prompt_tokens + usage.completion_tokens - 1;
    }
    const messages = turns.slice(0, 2);
    const again = await chat(emulator, { messages, max_tokens: 1 });
    const expected = Math.floor((again.usage.prompt_tokens - 1) / BLOCK_TOKENS) * BLOCK_TOKENS;
    assert.equal(again.usage.prompt_tokens_details.cached_tokens, expected);
    assert.ok(expected > 0);
    const salted = await chat(emulator, { messages, max_tokens: 1, cache_salt: "tenant-b" });
    assert.equal(salted.usage.prompt_tokens_details.cached_tokens, 0);
  } finally {
    await emulator.close();
  }
});

interface ChatAnswer {
  readonly usage: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly prompt_tokens_details: { readonly cached_tokens: number };
  };
  readonly choices: readonly { readonly message: { readonly content: string } }[];
}

async function chat(emulator: Emulator, body: unknown): Promise<ChatAnswer> {
  const bytes = requestBytes("POST", "/v1/chat/completions", body);
  return JSON.parse(parseResponse(await sendRaw(emulator.port, bytes, isWhole)).chunks[0] ?? "") as ChatAnswer;
}

async function ask(emulator: Emulator, body: unknown): Promise<HttpMessage> {
  return parseResponse(await sendRaw(emulator.port, requestBytes("POST", "/v1/completions", body), isWhole));
}

interface TextChoice {
  readonly index: number;
  readonly text: string;
}

function wholeTexts(message: HttpMessage): readonly string[] {
  return (JSON.parse(message.chunks[0] ?? "") as { choices: TextChoice[] }).choices.map((choice) => choice.text);
}

function streamTexts(message: HttpMessage): readonly string[] {
  const texts: string[] = [];
  for (const event of eventData(message).filter((one) => one.startsWith("{"))) {
    for (const { index, text } of (JSON.parse(event) as { choices: TextChoice[] }).choices) {
      texts[index] = (texts[index] ?? "") + text;
    }
  }
  return texts;
}

/** Sends and waits for the end, or leaves after a while. Every way to end is fine here. */
function sendAndLeave(
  emulator: Emulator,
  bytes: Buffer,
  leaveAfterMs: number | undefined,
  index: number,
): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(emulator.port, "127.0.0.1", () => socket.write(bytes));
    let received = Buffer.alloc(0);
    socket.on("data", (part: Buffer) => {
      received = Buffer.concat([received, part]);
      if (isWhole(received)) socket.destroy();
    });
    socket.on("error", () => undefined);
    socket.on("close", () => resolve());
    if (leaveAfterMs === undefined) return;
    setTimeout(() => (index % 2 === 0 ? socket.destroy() : socket.end()), leaveAfterMs);
  });
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
