import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { get_encoding } from "tiktoken";
import { createTokenizer } from "./create-tokenizer.ts";
import type { DescribedTokenizer } from "#live/tokenizer/described-tokenizer.ts";
import type { PromptSource, TokenizedPrompt } from "#live/tokenizer/text/tokenizer.ts";

const SCOPE = { model: "m", salt: "" };
/** Words around a step's text: its tag's tokens and two marks. */
const MARKS = 2;

let tokenizer: DescribedTokenizer;
before(async () => {
  tokenizer = await createTokenizer({ kind: "tiktoken", blockTokens: 16, blockHash: "blake3", secret: "s" });
});
after(() => tokenizer.close());

function encode(text: string): Promise<TokenizedPrompt> {
  const prompt: PromptSource = { kind: "text", text };
  return Promise.resolve(tokenizer.encode(prompt, SCOPE));
}

function common(a: TokenizedPrompt, b: TokenizedPrompt): number {
  let blocks = 0;
  while (blocks < a.blocks.length && a.blocks.hashes[2 * blocks] === b.blocks.hashes[2 * blocks]) blocks++;
  return blocks;
}

test("counts what the encoding counts, special tokens being text", async () => {
  const encoding = get_encoding("cl100k_base");
  for (const text of ["Hello, world!", "日本語 and 🤣", "<|endoftext|> stays text", "x\n".repeat(300)]) {
    const found = await encode(text);
    assert.equal(found.promptTokens, encoding.encode_ordinary(text).length + MARKS, text);
    assert.ok(!found.exact && !found.fellBack);
    assert.equal(found.blocks.length, Math.floor(found.promptTokens / 16));
  }
  encoding.free();
});

test("a long text is cut so that its continuation keeps the cuts, and does not hold up others", async () => {
  const prose = "The quick brown fox, 123 of them, jumps over it. ".repeat(600);
  const solid = "Zz9".repeat(9000);
  for (const text of [prose, solid, `${prose}${solid}`]) {
    const whole = tokenizer.encode({ kind: "text", text: `${text} and more of it` }, SCOPE);
    assert.ok(whole instanceof Promise);
    const part = await encode(text);
    assert.ok(common(part, await whole) >= part.blocks.length - 1);
  }
});

test("the engine's counts correct the length, from one of these tokens to one of the engine's", async () => {
  const before = await encode("some words to count ".repeat(20));
  for (let i = 0; i < 200; i++)
    tokenizer.learn("m", await encode("some words to count ".repeat(20)), 2 * before.promptTokens);
  const after = await encode("some words to count ".repeat(20));
  assert.ok(Math.abs(after.promptTokens - 2 * before.promptTokens) <= 2);
  assert.ok(Math.abs(after.blocks.blockTokens - 32) < 1);
});
