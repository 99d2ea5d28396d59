import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { ABSENT, hashShort, HIGH_MASKS, LOW_MASKS, PieceTable } from "#live/tokenizer/bpe/piece-table.ts";

const strings = fc.uniqueArray(fc.uint8Array({ minLength: 1, maxLength: 20 }), {
  maxLength: 200,
  selector: (bytes) => bytes.join(),
});

function viewOf(bytes: Uint8Array): DataView {
  const padded = new Uint8Array(bytes.length + 8).fill(0xaa);
  padded.set(bytes);
  return new DataView(padded.buffer);
}

function get(table: PieceTable, bytes: Uint8Array): number {
  const view = viewOf(bytes);
  const { length } = bytes;
  if (length > 8) return table.getLong(view, 0, length);
  const low = view.getInt32(0, true) & LOW_MASKS[length]!;
  const high = view.getInt32(4, true) & HIGH_MASKS[length]!;
  return table.getShort(low, high, length, hashShort(low, high, length, table.seed));
}

test("answers what was put in, and nothing else, until it is full or cleared", () => {
  fc.assert(
    fc.property(strings, strings, fc.integer({ min: 1, max: 200 }), (put, asked, room) => {
      const table = PieceTable.empty(room, 1 << 12);
      const model = new Map<string, number>();
      for (const [value, bytes] of put.entries()) {
        const taken = table.set(viewOf(bytes), 0, bytes.length, value);
        assert.equal(taken, value < room);
        if (taken) model.set(bytes.join(), value);
      }
      for (const bytes of [...put, ...asked]) assert.equal(get(table, bytes), model.get(bytes.join()) ?? ABSENT);
      table.clear();
      for (const bytes of put) assert.equal(get(table, bytes), ABSENT);
    }),
  );
});

test("has no room for more long strings than their bytes fit", () => {
  const table = PieceTable.empty(100, 20);
  assert.ok(table.set(viewOf(new Uint8Array(12).fill(1)), 0, 12, 1));
  assert.ok(!table.set(viewOf(new Uint8Array(12).fill(2)), 0, 12, 2));
  assert.ok(table.set(viewOf(new Uint8Array(8).fill(3)), 0, 8, 3));
  assert.equal(get(table, new Uint8Array(12).fill(1)), 1);
});
