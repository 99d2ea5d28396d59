import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { BlockTable } from "#trace/codec/block-table.ts";
import { chainOf } from "../trace-samples.ts";

test("of every chain the longest head that was added before is known, and the rest is numbered in order", () => {
  // Heads of a few long prompts, so that chains part at any depth, and lie on one another in pieces.
  const prompt = fc.array(fc.nat(1), { maxLength: 60 }).map((bits) => bits.map((bit, i) => (i % 7 === 0 ? bit : i)));
  fc.assert(
    fc.property(fc.array(prompt, { maxLength: 40 }), (prompts) => {
      const table = new BlockTable();
      const numbers = new Map<string, number>();
      for (const symbols of prompts) {
        const heads = symbols.map((_, i) => symbols.slice(0, i + 1).join());
        const known = heads.findIndex((head) => !numbers.has(head));
        const expected = known < 0 ? symbols.length : known;
        const first = numbers.size;
        assert.deepEqual(table.add(chainOf(symbols)), {
          parent: expected === 0 ? -1 : numbers.get(heads[expected - 1]!),
          first,
          known: expected,
        });
        for (const head of heads.slice(expected)) numbers.set(head, numbers.size);
        assert.equal(table.size, numbers.size);
      }
    }),
    { numRuns: 300 },
  );
});

test("a large table finds all that was added, and nothing once it started afresh", () => {
  const table = new BlockTable();
  const prompts = Array.from({ length: 300 }, (_, i) => [i, ...Array.from({ length: 100 }, (_one, k) => k)]);
  for (const symbols of prompts) assert.equal(table.add(chainOf(symbols)).known, 0);
  for (const symbols of prompts) assert.equal(table.add(chainOf(symbols)).known, symbols.length);
  assert.equal(table.size, 300 * 101);
  table.clear();
  assert.deepEqual(table.add(chainOf(prompts[0]!)), { parent: -1, first: 0, known: 0 });
});
