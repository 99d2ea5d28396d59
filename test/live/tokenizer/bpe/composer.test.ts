import assert from "node:assert/strict";
import { test } from "node:test";
import { nfcNormalizer } from "tokenizers";
import { composedDifferently, Composer } from "#live/tokenizer/bpe/composer.ts";

const library = nfcNormalizer();
const composer = new Composer(library, composedDifferently(library));

test("composes as the library does, long runs of marks too", () => {
  for (const text of [
    "e\u0301",
    "a\u0323\u0301b",
    `x${"\u0301\u0323".repeat(2_000)}y`,
    "\u1112\u1161\u11ab",
    "日本語",
  ]) {
    assert.equal(composer.compose(text), library.normalizeString(text));
  }
});

test("long runs of marks, which JavaScript sorts by insertion, do not go through it", (t) => {
  const normalize = t.mock.method(String.prototype, "normalize");
  composer.compose(`a${"\u0301\u0323".repeat(50)}`);
  assert.equal(normalize.mock.callCount(), 0);
  composer.compose("e\u0301 and so on");
  assert.equal(normalize.mock.callCount(), 1);
});

test("where the library composes a character otherwise, texts with any of its parts go through the library", () => {
  // The dotted long s and what it is made of.
  const odd = { normalizeString: (text: string) => (text.includes("\u1e9b") ? "odd" : text.normalize("NFC")) };
  const differing = composedDifferently(odd);
  assert.deepEqual(
    differing.toSorted((a, b) => a - b),
    [0x17f, 0x307, 0x1e9b],
  );
  const own = new Composer(odd, differing);
  assert.equal(own.compose("\u1e9b"), "odd");
});
