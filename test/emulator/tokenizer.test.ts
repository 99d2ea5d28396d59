import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { randomFor } from "#core/base/random.ts";
import { QuadTokenizer } from "#emulator/tokenizer/quad-tokenizer.ts";
import type { ChatPrompt } from "#emulator/tokenizer/chat-prompt.ts";

const tokenizer = new QuadTokenizer();
const text = fc.string({ unit: "grapheme", maxLength: 60 });

test("decoding what was encoded gives the text back, with ids of the vocabulary", () => {
  fc.assert(
    fc.property(text, (given) => {
      const ids = tokenizer.encode(given);
      assert.equal(Array.from(ids, (id) => tokenizer.decode(id)).join(""), given);
      for (const id of ids) assert.ok(tokenizer.has(id) && id >= 0, String(id));
    }),
  );
});

test("a text continued keeps its tokens but for the last", () => {
  fc.assert(
    fc.property(text, text, (begin, rest) => {
      const short = tokenizer.encode(begin);
      const kept = short.slice(0, -1);
      assert.deepEqual(tokenizer.encode(begin + rest).slice(0, kept.length), kept);
    }),
  );
});

test("plain text is about four bytes a token", () => {
  const given = "The quick brown fox jumps over the lazy dog. ".repeat(20);
  assert.equal(tokenizer.encode(given).length, given.length / 4);
});

test("an answer sent back as history encodes to the tokens that were generated", () => {
  fc.assert(
    fc.property(fc.nat(), text, fc.integer({ min: 1, max: 80 }), (seed, question, length) => {
      const random = randomFor(seed, 0);
      const pieces = Array.from({ length }, (_, i) => tokenizer.draw(random, i === 0));
      const answer = pieces.map((piece) => piece.text).join("");
      const before = tokenizer.encodeChat(chat([["user", question]]));
      const after = tokenizer.encodeChat(
        chat([
          ["user", question],
          ["assistant", answer],
          ["user", "and?"],
        ]),
      );
      const generated = [...before, ...pieces.map((piece) => piece.id), tokenizer.endToken];
      assert.deepEqual(Array.from(after).slice(0, generated.length), generated);
    }),
  );
});

test("ids outside the vocabulary are distinguished from those inside", () => {
  for (const id of [-1, 0.5, 999_999, 2 ** 31, Number.NaN]) assert.equal(tokenizer.has(id), false, String(id));
  for (const id of [0, 255, 128_000, 128_009, 2 ** 22, 2 ** 24 + 2 ** 28 - 1]) assert.ok(tokenizer.has(id), String(id));
});

test("a lone surrogate is a character like the one that stands for it", () => {
  assert.deepEqual(tokenizer.encode("a\ud800b"), tokenizer.encode("a\ufffdb"));
});

function chat(turns: readonly (readonly [string, string])[]): ChatPrompt {
  const messages = turns.map(([role, content]) => ({ role, content, source: { role, content } }));
  return { messages, tools: undefined, addGenerationPrompt: true, continueFinalMessage: false, variables: {} };
}
