import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";

import type { EngineCaller } from "#live/beside/engine-caller.ts";
import { TokenTexts } from "#live/beside/token-texts.ts";
import type { EndpointEntry } from "#live/endpoints/endpoint-directory.ts";

const ENTRY = { id: "a", url: "http://a" } as EndpointEntry;

/** An engine with these tokens, by their place; it writes no blank at the beginning, as some tokenizers do. */
function textsOf(pieces: readonly Buffer[], answer?: (text: string) => { statusCode: number; body: string }) {
  const call = (_entry: EndpointEntry, { body }: { body: Buffer }): Promise<unknown> => {
    const { tokens } = JSON.parse(body.toString()) as { tokens: number[] };
    const prompt = Buffer.concat(tokens.map((id) => pieces[id]!))
      .toString()
      .trimStart();
    const stated = answer?.(prompt) ?? { statusCode: 200, body: JSON.stringify({ prompt }) };
    return Promise.resolve({ statusCode: stated.statusCode, body: [Buffer.from(stated.body)] });
  };
  return new TokenTexts({ call } as unknown as EngineCaller);
}

const TOKENS: readonly (readonly Buffer[])[] = [
  ...["a", " bc", "END", "\n", "\u00e9", ""].map((text) => [Buffer.from(text)]),
  [Buffer.from([0xf0, 0x9f]), Buffer.from([0x98, 0x80])],
  [Buffer.from([0x20, 0xe6]), Buffer.from([0xbc]), Buffer.from([0xa2])],
];

test("law: a part of a text has the tokens up to the first with which all of it is there", async () => {
  const parts = fc.array(fc.constantFrom(...TOKENS), { minLength: 1, maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(parts, fc.nat(1_000), async (drawn, share) => {
      const pieces = drawn.flat();
      const text = Buffer.concat(pieces).toString();
      const tokens = pieces.map((_piece, id) => id);
      const length = Math.floor((text.length * share) / 1_000);
      // By bytes: a character is there with its last one.
      const bytes = Buffer.byteLength(
        text
          .slice(0, length)
          .toWellFormed()
          .replace(/\ufffd$/, "\u{1f600}"),
      );
      let expected = 1;
      while (Buffer.concat(pieces.slice(0, expected)).length < bytes) expected++;
      const count = await textsOf(pieces).countUpTo(length, { entry: ENTRY, model: "m", tokens, text });
      const where = `${JSON.stringify(text)} up to ${length}`;
      // Of blanks at the beginning, which such an engine does not write, nobody states which token has them.
      const isBlank = text.slice(0, length).trimStart() === "";
      if (isBlank) assert.ok(count >= 1 && count <= expected, where);
      else assert.equal(count, expected, where);
    }),
    { examples: [[[TOKENS[5]!, TOKENS[1]!, TOKENS[2]!, TOKENS[0]!, TOKENS[0]!, TOKENS[0]!], 112]] },
  );
});

test("all tokens count where the engine does not state what their text is, or states another", async () => {
  const pieces = ["a", "b", "c"].map((text) => Buffer.from(text));
  const asked = { entry: ENTRY, model: "m", tokens: [0, 1, 2], text: "abc" };
  assert.equal(await textsOf(pieces).countUpTo(1, asked), 1);
  const answers = [
    { statusCode: 404, body: '{"prompt":"abc"}' },
    { statusCode: 200, body: '{"prompt":"xyz"}' },
    { statusCode: 200, body: '{"prompt":7}' },
    { statusCode: 200, body: "no JSON" },
    { statusCode: 200, body: JSON.stringify({ prompt: "abc".padStart(2 ** 21) }) },
  ];
  for (const answer of answers) assert.equal(await textsOf(pieces, () => answer).countUpTo(1, asked), 3, answer.body);
});
