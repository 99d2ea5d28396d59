import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { openBpeTable } from "#live/tokenizer/bpe/bpe-table.ts";
import { smallTable } from "../table/small-table.ts";

test("what was packed is what is opened, in the same memory", () => {
  const packed = smallTable();
  const table = openBpeTable(packed)!;
  assert.equal(table.facts.added[0]!.content, "<|énd|>");
  assert.deepEqual(table.facts.surround, { before: [300], behind: [] });
  assert.equal(table.byteIds[255], 262);
  assert.deepEqual([...table.mergeSlots], [1, 2, 3, 4]);
  assert.deepEqual([...table.mergeMade], [9]);
  assert.deepEqual([...table.entrySlots], [-1, 5, 6, 7]);
  assert.deepEqual([...table.entryBytes], [8, 9, 10]);
  assert.deepEqual([...table.classes], [1, 2, 3, 4, 0]);
  assert.equal(table.classes.buffer, packed);
});

test("one byte that differs, or any part that is missing, is found", () => {
  const whole = new Uint8Array(smallTable());
  const opened = (bytes: Uint8Array): unknown => {
    const buffer = new SharedArrayBuffer(bytes.length);
    new Uint8Array(buffer).set(bytes);
    return openBpeTable(buffer);
  };
  assert.ok(opened(whole) !== undefined);
  fc.assert(
    fc.property(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
      const damaged = whole.slice();
      damaged[at]! ^= change;
      assert.equal(opened(damaged), undefined);
      assert.equal(opened(whole.slice(0, at)), undefined);
    }),
  );
});
