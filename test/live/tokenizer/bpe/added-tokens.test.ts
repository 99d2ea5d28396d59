import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { AddedTokens } from "#live/tokenizer/bpe/added-tokens.ts";

const contents = fc.uniqueArray(fc.stringMatching(/^[<|a>]{1,4}$/), { maxLength: 8 });
const texts = fc.stringMatching(/^[<|a>b]{0,40}$/);

test("finds the leftmost token, of those that start there the longest", () => {
  fc.assert(
    fc.property(contents, texts, fc.nat(10), (tokens, text, from) => {
      const added = new AddedTokens(tokens.map((content, id) => ({ id, content })));
      const expected = Array.from({ length: text.length }, (_, start) => start)
        .filter((start) => start >= from)
        .flatMap((start) =>
          tokens
            .map((content, id) => ({ id, content, start }))
            .filter(({ content }) => text.startsWith(content, start))
            .sort((a, b) => b.content.length - a.content.length)
            .slice(0, 1),
        )[0];
      assert.deepEqual(added.find(text, from), expected);
    }),
  );
});

test("looks no further than asked, but reads a token to its end", () => {
  fc.assert(
    fc.property(contents, texts, fc.nat(10), fc.nat(45), (tokens, text, from, until) => {
      const added = new AddedTokens(tokens.map((content, id) => ({ id, content })));
      const found = added.find(text, from);
      assert.deepEqual(added.find(text, from, until), found !== undefined && found.start < until ? found : undefined);
    }),
  );
});

test("empty tokens are nowhere", () => {
  assert.equal(new AddedTokens([{ id: 1, content: "" }]).find("abc", 0), undefined);
});
