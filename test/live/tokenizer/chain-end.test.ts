import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { createTokenizer } from "./create-tokenizer.ts";
import type { ChatMessage, PromptSource, TokenizedPrompt } from "#live/tokenizer/text/tokenizer.ts";
import { CHAT_TOKENS, folderOf, smallLlama } from "./llama-files.ts";

const SCOPE = { model: "m", salt: "" };
const BLOCK_TOKENS = 3;
const SHARED = { blockTokens: BLOCK_TOKENS, blockHash: "blake3", secret: "s" } as const;

/** The words of a prompt's blocks and of those that `tokens` fill behind it. */
function continuedBy(prompt: TokenizedPrompt, tokens: readonly number[]): number[] {
  assert.ok(prompt.exact && prompt.end !== undefined);
  return [...prompt.blocks.hashes, ...prompt.end.hashesBehind(Int32Array.from(tokens))];
}

test("blocks behind a prompt are those of a prompt that holds both", async () => {
  const tokenizer = await createTokenizer({ kind: "estimate", ...SHARED });
  const tokens = fc.array(fc.nat(200_000), { maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(tokens, tokens, async (first, second) => {
      const encode = async (ids: readonly number[]): Promise<TokenizedPrompt> =>
        tokenizer.encode({ kind: "tokens", tokens: ids }, SCOPE);
      const both = await encode([...first, ...second]);
      assert.deepEqual(continuedBy(await encode(first), second), [...both.blocks.hashes]);
    }),
  );
});

/** Bodies and vLLM's own tokens of them under a template that puts fixed text around messages, as Llama 3's does. */
test("a chat's next turn is the prompt, the answer's tokens and what follows, by vLLM's own tokens", async () => {
  const folder = folderOf({
    "tokenizer.json": smallLlama(),
    "tokenizer_config.json": { bos_token: "<|begin_of_text|>", eos_token: "<|end_of_text|>" },
  });
  const chatTemplateFile = join(CHAT_TOKENS, "headers.jinja");
  const tokenizer = await createTokenizer({ kind: "huggingface", tokenizerFile: folder, chatTemplateFile, ...SHARED });
  const lines = (name: string) => readFileSync(join(CHAT_TOKENS, name), "utf8").trim().split("\n");
  const tokensOf = lines("headers.tokens.jsonl").map((line) => JSON.parse(line) as number[]);
  let turns = 0;
  for (const [at, line] of lines("bodies.jsonl").entries()) {
    const { messages = [], ...more } = JSON.parse(line) as { messages?: ChatMessage[] };
    if (Object.keys(more).some((field) => field !== "model")) continue;
    for (const [place, { role, content }] of messages.entries()) {
      if (role !== "assistant" || place === 0 || typeof content !== "string") continue;
      const before: PromptSource = { kind: "chat", messages: messages.slice(0, place), tools: undefined, template: {} };
      const prompt = await tokenizer.encode(before, SCOPE);
      const whole = await tokenizer.encode({ kind: "tokens", tokens: tokensOf[at]! }, SCOPE);
      const behind = tokensOf[at]!.slice(prompt.promptTokens);
      assert.deepEqual(continuedBy(prompt, behind), [...whole.blocks.hashes], `body ${at}, message ${place}`);
      turns++;
    }
  }
  assert.ok(turns >= 10, `${turns} turns`);
});
