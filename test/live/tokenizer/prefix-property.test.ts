import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { ANY_CHARACTER } from "../../any-character.ts";
import { createTokenizer, type TokenizerOptions } from "./create-tokenizer.ts";
import type { ChatMessage, PromptSource, TokenizedPrompt, Tokenizer } from "#live/tokenizer/text/tokenizer.ts";

const SCOPE = { model: "m", salt: "" };
const OPTIONS: TokenizerOptions = { kind: "estimate", blockTokens: 16, blockHash: "blake3", secret: "s" };
const KINDS = ["estimate", "character"] as const;

const text = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.string({ unit: ANY_CHARACTER, maxLength: 40 }),
  fc.lorem({ maxCount: 120 }),
  fc.constantFrom("", "same", "same again"),
);
const message: fc.Arbitrary<ChatMessage> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ role: fc.constantFrom("user", "assistant", "system"), content: text }) },
  { weight: 1, arbitrary: fc.record({ role: fc.constant("tool"), content: text, tool_call_id: text }) },
  {
    weight: 1,
    arbitrary: fc.record({
      role: fc.constantFrom("user", "x"),
      content: fc.array(
        fc.oneof(
          text,
          text.map((t) => ({ type: "text", text: t })),
          fc.constant({ type: "image_url" }),
        ),
      ),
    }),
  },
);
const conversation = fc.array(message, { minLength: 1, maxLength: 12 });

function chat(messages: readonly ChatMessage[]): PromptSource {
  return { kind: "chat", messages, tools: undefined, template: {} };
}

function answer(tokenizer: Tokenizer, prompt: PromptSource, scope = SCOPE): Promise<TokenizedPrompt> {
  return Promise.resolve(tokenizer.encode(prompt, scope));
}

function common(a: TokenizedPrompt, b: TokenizedPrompt): number {
  let blocks = 0;
  const { length } = a.blocks;
  while (
    blocks < Math.min(length, b.blocks.length) &&
    a.blocks.hashes[2 * blocks] === b.blocks.hashes[2 * blocks] &&
    a.blocks.hashes[2 * blocks + 1] === b.blocks.hashes[2 * blocks + 1]
  ) {
    blocks++;
  }
  return blocks;
}

for (const kind of KINDS) {
  test(`${kind}: a chat that is known to begin as another is encoded as one that is not`, async () => {
    const plain = await createTokenizer({ ...OPTIONS, kind, memoEntriesMax: 0 });
    const small = await createTokenizer({ ...OPTIONS, kind, memoEntriesMax: 4 });
    const large = await createTokenizer({ ...OPTIONS, kind });
    const turn = fc.record({
      more: conversation,
      isLonger: fc.boolean(),
      salt: fc.constantFrom("", "", "a"),
      tools: fc.constantFrom(undefined, undefined, [{ type: "function" }]),
      template: fc.constantFrom({}, {}, { documents: [1] }),
    });
    await fc.assert(
      fc.asyncProperty(conversation, fc.array(turn, { maxLength: 8 }), async (first, turns) => {
        const longer = [...first, ...first];
        for (const { more, isLonger, salt, ...rest } of turns) {
          const beginning = isLonger ? longer : first;
          const prompt = { kind: "chat", messages: [...beginning, ...more], ...rest } as const;
          const scope = { model: "m", salt };
          const expected = await answer(plain, prompt, scope);
          for (const other of [small, large]) {
            assert.deepEqual(await answer(other, { ...prompt, beginning }, scope), expected);
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  test(`${kind}: what the memo remembers changes no answer`, async () => {
    const plain = await createTokenizer({ ...OPTIONS, kind, memoEntriesMax: 0 });
    const small = await createTokenizer({ ...OPTIONS, kind, memoEntriesMax: 7 });
    const large = await createTokenizer({ ...OPTIONS, kind });
    await fc.assert(
      fc.asyncProperty(fc.array(conversation, { minLength: 1, maxLength: 4 }), async (conversations) => {
        for (const messages of conversations) {
          for (let end = 1; end <= messages.length; end++) {
            const prompt = chat(structuredClone(messages.slice(0, end)));
            const expected = await answer(plain, prompt);
            assert.deepEqual(await answer(small, prompt), expected);
            assert.deepEqual(await answer(large, prompt), expected);
            assert.equal(expected.blocks.hashes.length, 2 * expected.blocks.length);
          }
        }
      }),
      { numRuns: 60 },
    );
    assert.ok(large.describe().memo.hits > 0);
    assert.ok(small.describe().memo.evictions > 0);
    assert.ok(small.describe().memo.entries <= 7);
  });

  test(`${kind}: a conversation that grows keeps its blocks, a branch shares them up to the branch`, async () => {
    const tokenizer = await createTokenizer({ ...OPTIONS, kind });
    await fc.assert(
      fc.asyncProperty(conversation, conversation, conversation, async (head, left, right) => {
        const short = await answer(tokenizer, chat(head));
        const a = await answer(tokenizer, chat([...head, ...left]));
        const b = await answer(tokenizer, chat([...head, ...right]));
        assert.equal(common(short, a), short.blocks.length);
        assert.ok(common(a, b) >= short.blocks.length);
      }),
      { numRuns: 60 },
    );
  });

  test(`${kind}: text and its continuation begin alike, other text does not`, async () => {
    const tokenizer = await createTokenizer({ ...OPTIONS, kind });
    const shared = "the quick brown fox jumps over the lazy dog. ".repeat(40);
    const a = await answer(tokenizer, chat([{ role: "user", content: `${shared}one?` }]));
    const b = await answer(tokenizer, chat([{ role: "user", content: `${shared}two?` }]));
    const c = await answer(tokenizer, chat([{ role: "user", content: `X${shared}` }]));
    assert.ok(common(a, b) >= a.blocks.length - 1);
    assert.equal(common(a, c), 0);
  });
}

test("scopes never share a block, and neither do deployments", async () => {
  const prompt = chat([{ role: "user", content: "a long enough text ".repeat(20) }]);
  const tokenizer = await createTokenizer(OPTIONS);
  const other = await createTokenizer({ ...OPTIONS, secret: "t" });
  const base = await answer(tokenizer, prompt, { model: "ab", salt: "c" });
  assert.ok(base.blocks.length > 0);
  for (const scope of [
    { model: "a", salt: "bc" },
    { model: "ab", salt: "" },
    { model: "ab", salt: "d" },
    { model: "abc", salt: "" },
  ]) {
    assert.equal(common(base, await answer(tokenizer, prompt, scope)), 0, JSON.stringify(scope));
  }
  assert.equal(common(base, await answer(other, prompt, { model: "ab", salt: "c" })), 0);
});

test("answers at once where it can, and a very long prompt yields and gives the same blocks", async () => {
  const tokenizer = await createTokenizer(OPTIONS);
  const content = "word ".repeat(60_000);
  assert.ok(!(tokenizer.encode(chat([{ role: "user", content: "hello" }]), SCOPE) instanceof Promise));
  const slow = tokenizer.encode(chat([{ role: "user", content }]), SCOPE);
  assert.ok(slow instanceof Promise);
  const first = await slow;
  const again = tokenizer.encode(chat([{ role: "user", content }]), SCOPE);
  assert.ok(!(again instanceof Promise));
  assert.deepEqual(again, first);
  const tokens = Array.from({ length: 100_000 }, (_, i) => i);
  const long = await answer(tokenizer, { kind: "tokens", tokens });
  const start = await answer(tokenizer, { kind: "tokens", tokens: tokens.slice(0, 160) });
  assert.equal(long.promptTokens, 100_000);
  assert.equal(common(long, start), 10);
});

test("requests that run together do not disturb each other", async () => {
  const alone = await createTokenizer({ ...OPTIONS, memoEntriesMax: 0 });
  const together = await createTokenizer({ ...OPTIONS, memoEntriesMax: 9 });
  const prompts = Array.from({ length: 24 }, (_, i) =>
    chat([
      { role: "system", content: "shared ".repeat(100) },
      { role: "user", content: `${i % 5} `.repeat(i % 3 === 0 ? 60_000 : 50) },
      { role: "user", content: `question ${i}` },
    ]),
  );
  const expected = [];
  for (const prompt of prompts) expected.push(await answer(alone, prompt));
  assert.deepEqual(await Promise.all(prompts.map((prompt) => answer(together, prompt))), expected);
});

test("the engine's counts correct the estimate, images do not", async () => {
  const tokenizer = await createTokenizer(OPTIONS);
  const prompt = chat([{ role: "user", content: "abcdefgh".repeat(100) }]);
  const before = await answer(tokenizer, prompt);
  assert.equal(before.exact, false);
  assert.ok(Math.abs(before.promptTokens - 200) <= 4);
  for (let i = 0; i < 200; i++) {
    const now = await answer(tokenizer, prompt);
    tokenizer.learn("m", now, 100);
  }
  const after = await answer(tokenizer, prompt);
  assert.ok(Math.abs(after.promptTokens - 100) <= 1, String(after.promptTokens));
  assert.ok(Math.abs(after.blocks.blockTokens - 8) < 0.2, String(after.blocks.blockTokens));
  assert.equal((await answer(tokenizer, prompt, { model: "other", salt: "" })).promptTokens, before.promptTokens);
  const image = { type: "image_url", image_url: { url: "data:..." } };
  const seen = chat([{ role: "user", content: [image, "what is it?"] }]);
  tokenizer.learn("m", await answer(tokenizer, seen), 30);
  assert.equal((await answer(tokenizer, prompt)).promptTokens, after.promptTokens);
});

test("nothing that a client sends makes it throw", async () => {
  const cyclic: Record<string, unknown> = {};
  let deep: unknown = "x";
  for (let i = 0; i < 20_000; i++) deep = [deep];
  cyclic["deep"] = deep;
  const odd = [null, 1, true, {}, [], [null], [1], [{ type: "text" }], [{ type: "text", text: 3 }], deep, "\ud800"];
  for (const kind of KINDS) {
    const tokenizer = await createTokenizer({ ...OPTIONS, kind });
    for (const content of odd) {
      const done = await answer(tokenizer, {
        kind: "chat",
        messages: [{ role: "user", content, extra: deep }],
        tools: [deep, null],
        template: { documents: deep, chat_template_kwargs: cyclic },
      });
      assert.ok(done.promptTokens >= 1);
    }
    await answer(tokenizer, { kind: "tokens", tokens: [-1, 2 ** 40, Number.NaN, 0.5] });
    await answer(tokenizer, chat([]));
    await answer(tokenizer, { kind: "text", text: "" });
  }
});
