import assert from "node:assert/strict";
import { test } from "node:test";
import { RunBook } from "#shadow/recorded/recorded-run.ts";
import { chain, request } from "../../core/state.ts";

const MILLI = 1_000;

/** One request a millisecond from `from` on, each of which takes ten. */
function ask(book: RunBook, from: number, count: number, blockCount = 4): void {
  const blocks = chain(1, blockCount);
  for (let i = from; i < from + count; i++) {
    const id = `r${i}`;
    book.take({ kind: "request-arrived", at: i * MILLI, request: request({ id, blocks }) }, "a");
    const counts = { promptTokens: 64, cachedTokens: 0, outputTokens: 4 };
    book.take({ kind: "request-finished", at: (i + 10) * MILLI, requestId: id, outcome: "ok", ...counts }, undefined);
  }
}

test("a window keeps all that ended since it was asked to, however many they are, and no more once it is not", () => {
  const book = new RunBook(100, 1e9);
  ask(book, 0, 1_000);
  assert.ok(book.requests <= 100, `${book.requests}`);
  book.keepSince(1_000 * MILLI);
  ask(book, 1_000, 5_000);
  // All of those, and at most a third as many from before.
  assert.ok(book.requests >= 5_000 && book.requests <= 5_100, `${book.requests}`);
  book.keepSince(5_000 * MILLI);
  ask(book, 6_000, 1_000);
  assert.ok(book.requests >= 2_000 && book.requests <= (4 / 3) * 2_010 + 1, `${book.requests}`);
  book.keepSince(Infinity);
  ask(book, 7_000, 100);
  assert.ok(book.requests <= 100, `${book.requests}`);
});

test("what it may take bounds it, and longer prompts leave room for fewer", () => {
  const kept = [4, 4_000].map((blocks) => {
    const book = new RunBook(100, 10e6);
    book.keepSince(0);
    ask(book, 0, 12_000, blocks);
    return book.requests;
  });
  // A thousand bytes each, and eight of a block.
  assert.ok(kept[0]! > 6_000 && kept[0]! < 9_700, `${kept[0]}`);
  assert.ok(kept[1]! > 200 && kept[1]! < 310, `${kept[1]}`);
});
