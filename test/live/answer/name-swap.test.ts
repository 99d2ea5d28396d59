import assert from "node:assert/strict";
import { test } from "node:test";
import { NameSwap } from "#live/answer/name-swap.ts";

/** Everything that comes out, and the longest that was held back after a piece. */
function through(text: string, cuts: readonly number[], from = "base", to = "chat"): { out: string; held: number } {
  const swap = new NameSwap(from, to);
  const bytes = Buffer.from(text);
  let [held, at] = [0, 0];
  const outs: Buffer[] = [];
  let passed = 0;
  for (const cut of [...cuts, bytes.length]) {
    const piece = swap.push(bytes.subarray(at, cut));
    outs.push(piece);
    passed += piece.length;
    held = Math.max(held, cut - passed);
    at = cut;
  }
  outs.push(swap.rest());
  return { out: Buffer.concat(outs).toString(), held };
}

const EVENT = 'data: {"id":"x","model":"base","choices":[{"delta":{"content":"ä"}}]}\n\n';

test("the member is renamed wherever the pieces are cut, with and without spaces, in each event", () => {
  for (const text of [
    EVENT,
    EVENT + EVENT,
    '{"model" : "base", "usage": null}',
    '{"message":{"model":"base"},"model":\n"base"}',
  ]) {
    const expected = text.replaceAll('"base"', '"chat"');
    const length = Buffer.byteLength(text);
    for (let cut = 0; cut <= length; cut++) {
      assert.equal(through(text, [cut]).out, expected, `cut at ${cut}`);
      assert.equal(through(text, [cut, Math.min(length, cut + 3)]).out, expected, `cut at ${cut} and behind`);
    }
    assert.equal(
      through(
        text,
        Array.from({ length }, (_, i) => i),
      ).out,
      expected,
      "byte by byte",
    );
  }
});

test("nothing else changes: other names, other members, text of an answer, and what only looks like it", () => {
  for (const text of [
    '{"model":"base-2","root":"base"}',
    '{"model":"bas","models":["base"]}',
    JSON.stringify({ content: 'say "model":"base" twice: "model": "base"' }),
    '{"model":null}',
    '{"model":"b',
    `{"model"${" ".repeat(200)}:"base"}`,
    "",
  ]) {
    assert.equal(through(text, [text.length >> 1]).out, text);
    assert.equal(
      through(
        text,
        Array.from({ length: text.length }, (_, i) => i),
      ).out,
      text,
    );
  }
});

test("a whole event is never held back, and of a piece at most what the member may begin with", () => {
  const swap = new NameSwap("base", "chat");
  assert.equal(swap.push(Buffer.from(EVENT)).toString(), EVENT.replace("base", "chat"));
  assert.equal(swap.rest().length, 0);
  const { held } = through(
    EVENT,
    Array.from({ length: EVENT.length }, (_, i) => i),
  );
  assert.ok(held <= '"model":"base"'.length);
});

test("names with quotes and other letters are written as JSON", () => {
  assert.equal(through('{"model":"base"}', [], "base", 'a"ü').out, '{"model":"a\\"ü"}');
});
