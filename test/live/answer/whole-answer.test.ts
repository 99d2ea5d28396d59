import assert from "node:assert/strict";
import { test } from "node:test";

import type { Delivery } from "#live/answer/answer.ts";
import { WholeAnswer } from "#live/answer/whole-answer.ts";
import { DEFAULT_LIMITS } from "#live/http/limits.ts";

const PIECE_BYTES = 65_536;
const TEXT = `{"choices":[{"index":0,"message":{"content":"${"word ".repeat(200_000)}"},"finish_reason":"stop"}]}`;

interface Written {
  body: Buffer | undefined;
  through: Buffer[];
}

function answered(headers: Record<string, string>, limits: Partial<typeof DEFAULT_LIMITS> = {}) {
  const written: Written = { body: undefined, through: [] };
  const delivery = {
    dialect: "chat",
    limits: { ...DEFAULT_LIMITS, ...limits },
    counters: { uninspected: 0 },
    headers: () => [],
    named: (body: Buffer) => body,
    writer: { whole: (_status: number, _headers: string[], body: Buffer) => (written.body = body) },
    letThrough: (_head: unknown, chunks: Buffer[]) => (written.through = chunks.map((chunk) => Buffer.from(chunk))),
    completed: () => answer.writeHeld(),
    attemptFailed: (fault: string) => assert.fail(fault),
  } as unknown as Delivery;
  const answer = new WholeAnswer(delivery, { status: 200, headers });
  return { answer, written };
}

/** As reads bring them, each with memory of its own. */
function pieces(text: string): Buffer[] {
  const bytes = Buffer.from(text);
  return Array.from({ length: Math.ceil(bytes.length / PIECE_BYTES) }, (_, i) => {
    const piece = bytes.subarray(i * PIECE_BYTES, (i + 1) * PIECE_BYTES);
    const own = Buffer.allocUnsafeSlow(piece.length);
    own.set(piece);
    return own;
  });
}

for (const [name, headers] of [
  ["of a stated length", { "content-length": String(TEXT.length) }],
  ["of no stated length", {}],
  ["of a length that is wrong", { "content-length": "5" }],
] as const) {
  test(`an answer ${name} is copied as it comes, each piece's memory given back before the next one but one`, () => {
    const { answer, written } = answered(headers);
    const all = pieces(TEXT);
    for (const [i, piece] of all.entries()) {
      answer.data(piece);
      const held = all.slice(0, i + 1).filter((one) => one.length > 0);
      assert.ok(held.length <= 2, `${held.length} of ${i + 1} pieces`);
    }
    answer.ended();
    assert.equal(written.body?.toString(), TEXT);
  });
}

test("an answer of a stated length has memory of that length alone", () => {
  const { answer, written } = answered({ "content-length": String(TEXT.length) });
  for (const piece of pieces(TEXT)) answer.data(piece);
  answer.ended();
  assert.equal(written.body!.buffer.byteLength, TEXT.length);
});

test("an answer in one piece is not copied", () => {
  const { answer, written } = answered({});
  const text = Buffer.from('{"choices":[{"finish_reason":"stop"}]}');
  answer.data(text);
  answer.ended();
  assert.equal(written.body!.buffer, text.buffer);
});

test("an answer that is too long to be held goes through with all that came, in order", () => {
  const { answer, written } = answered({}, { answerBytesInspected: 3 * PIECE_BYTES });
  for (const piece of pieces(TEXT).slice(0, 4)) answer.data(piece);
  assert.equal(Buffer.concat(written.through).toString(), TEXT.slice(0, 4 * PIECE_BYTES));
});
