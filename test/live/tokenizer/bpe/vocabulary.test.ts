import assert from "node:assert/strict";
import { test } from "node:test";
import { BYTE_CHARACTERS, readVocabulary } from "#live/tokenizer/bpe/vocabulary.ts";

/** As a file's text gives it: `__proto__` is an entry like any other there. */
function model(entries: readonly string[], merges: readonly unknown[]): Parameters<typeof readVocabulary>[0] {
  const vocab = [...BYTE_CHARACTERS, ...entries].map((entry, id) => `${JSON.stringify(entry)}:${id}`).join(",");
  return JSON.parse(`{"type":"BPE","vocab":{${vocab}},"merges":${JSON.stringify(merges)}}`) as Parameters<
    typeof readVocabulary
  >[0];
}

test("entries by the names of what every object has are entries like others, and are none where they are not listed", () => {
  const entries = ["__", "proto__", "__proto__", "construct", "or", "constructor"];
  const merges = ["__ proto__", ["construct", "or"]];
  const { merges: table, entries: whole } = readVocabulary(model(entries, merges), true);
  const [first, second] = [table.rank(256, 257), table.rank(259, 260)];
  assert.deepEqual([first, second], [0, 1]);
  assert.deepEqual([table.made(first), table.made(second)], [258, 261]);
  assert.notEqual(whole, undefined);
  for (const missing of ["__proto__", "constructor"]) {
    const without = entries.filter((entry) => entry !== missing);
    assert.throws(() => readVocabulary(model(without, merges), true), /expected a pair of entries of the vocabulary/);
  }
});

test("each of the 256 bytes has to have an entry", () => {
  const { vocab, ...rest } = model([], []);
  const { a: _a, ...others } = vocab as Record<string, number>;
  assert.throws(() => readVocabulary({ ...rest, vocab: others }, false), /each of the 256 bytes/);
});
