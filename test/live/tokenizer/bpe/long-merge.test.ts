import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { LongMerge } from "#live/tokenizer/bpe/long-merge.ts";
import { MergeTable, NO_RANK } from "#live/tokenizer/bpe/merge-table.ts";
import { ShortMerge } from "#live/tokenizer/bpe/short-merge.ts";

const LETTERS = 3;
const byteIds = Int32Array.from({ length: 256 }, (_, byte) => byte);

/** A vocabulary in which every merge makes a token of its own from tokens there already are. */
const merges = fc.array(fc.tuple(fc.nat(1000), fc.nat(1000)), { maxLength: 30 }).map((draws) => {
  const pairs = new Map<string, [number, number]>();
  for (const [left, right] of draws) {
    const tokens = LETTERS + pairs.size;
    const pair: [number, number] = [left % tokens, right % tokens];
    pairs.set(pair.join(), pairs.get(pair.join()) ?? pair);
  }
  return [...pairs.values()];
});
const text = fc.uint8Array({ max: LETTERS - 1, minLength: 1, maxLength: 60 });

test("the long merge, in slices of any size, and the short one merge alike: lowest rank first, then leftmost", () => {
  fc.assert(
    fc.property(merges, text, fc.integer({ min: 1, max: 9 }), (pairs, bytes, slice) => {
      const table = new MergeTable(pairs.length);
      for (const [rank, [left, right]] of pairs.entries()) table.set(left, right, rank, LETTERS + rank);
      const out = new Int32Array(64);
      const count = new ShortMerge(table, byteIds, 64).merge(bytes, 0, bytes.length, out, 0);
      const long = new LongMerge(table, Int32Array.from(bytes));
      while (!long.done) assert.ok(long.advance(slice) <= slice);
      assert.deepEqual([...long.tokens()], [...out.subarray(0, count)]);
      assert.deepEqual([...long.tokens()], plainly(pairs, [...bytes]));
    }),
  );
});

function plainly(pairs: readonly (readonly [number, number])[], tokens: readonly number[]): number[] {
  const rank = (at: number): number => {
    const found = pairs.findIndex(([left, right]) => left === tokens[at] && right === tokens[at + 1]);
    return found < 0 ? NO_RANK : found;
  };
  const ranks = tokens.slice(1).map((_, at) => rank(at));
  const best = Math.min(...ranks, NO_RANK);
  if (best === NO_RANK) return [...tokens];
  const at = ranks.indexOf(best);
  return plainly(pairs, [...tokens.slice(0, at), LETTERS + best, ...tokens.slice(at + 2)]);
}
