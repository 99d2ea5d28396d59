import assert from "node:assert/strict";
import { test } from "node:test";
import { createTokenizer } from "./create-tokenizer.ts";
import { Sightings } from "#live/tokenizer/sightings.ts";
import type { PromptSource } from "#live/tokenizer/text/tokenizer.ts";

const SCOPE = { model: "m", salt: "" };

test("a text is known once it was noted, by its salt, and few others are taken for it", () => {
  const sightings = new Sightings();
  const texts = Array.from({ length: 1000 }, (_, i) => `message number ${i} of the conversation`);
  for (const text of texts) assert.equal(sightings.has(text, 1), false);
  const taken = texts.filter((text) => sightings.note(text, 1));
  assert.ok(taken.length <= 1, `${taken.length} were taken for another`);
  const known = texts.filter((text) => sightings.has(text, 1));
  assert.ok(known.length > 915, `${known.length} of ${texts.length} are known`);
  assert.ok(texts.filter((text) => sightings.has(text, 2)).length <= 1);
});

test("it forgets, and never grows", () => {
  const sightings = new Sightings();
  sightings.note("the first", 0);
  for (let i = 0; i < 200_000; i++) sightings.note(`another ${i}`, 0);
  assert.equal(sightings.has("the first", 0), false);
});

function chat(...contents: readonly string[]): PromptSource {
  const messages = contents.map((content, i) => ({ role: i % 2 === 0 ? "user" : "assistant", content }));
  return { kind: "chat", messages, tools: undefined, template: {} };
}

test("a last message is remembered when it comes again or has an answer behind it, and its blocks are the same", async () => {
  const options = { kind: "estimate", blockTokens: 4, blockHash: "blake3", secret: "s" } as const;
  const tokenizer = await createTokenizer(options);
  const plain = await createTokenizer({ ...options, memoEntriesMax: 0 });
  const entries = (): number => tokenizer.describe().memo.entries;
  const question = "what is the shadow of a gnomon at noon? ".repeat(3);
  const answer = "the shortest of the day. ".repeat(5);
  const asked = [chat(question), chat(question), chat(question, answer, "why?"), chat(question, answer, "when?")];
  const remembered: number[] = [];
  for (const prompt of asked) {
    assert.deepEqual(await tokenizer.encode(prompt, SCOPE), await plain.encode(prompt, SCOPE));
    remembered.push(entries());
  }
  // The scope itself is one; the question at its second sight; the answer between two questions.
  assert.deepEqual(remembered, [1, 2, 3, 3]);
});

test("a long last message is remembered at once", async () => {
  const tokenizer = await createTokenizer({ kind: "estimate", blockTokens: 16, blockHash: "blake3", secret: "s" });
  await tokenizer.encode(chat("a document of some length. ".repeat(400)), SCOPE);
  assert.equal(tokenizer.describe().memo.entries, 2);
});
