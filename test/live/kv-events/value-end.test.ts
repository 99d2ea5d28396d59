import assert from "node:assert/strict";
import { test } from "node:test";
import { encode } from "@msgpack/msgpack";
import fc from "fast-check";
import { atOnce } from "#live/base/loop-turn.ts";
import { listHead, valueEnd, ValueError } from "#live/kv-events/value-end.ts";

const leaf = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  fc.integer(),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
  fc.double(),
  fc.string({ maxLength: 300 }),
  fc.uint8Array({ maxLength: 300 }),
);
const value = fc.letrec((tie) => ({
  any: fc.oneof(
    { maxDepth: 6 },
    leaf,
    fc.array(tie("any"), { maxLength: 20 }),
    fc.dictionary(fc.string({ maxLength: 9 }), tie("any"), { maxKeys: 20 }),
  ),
})).any;
const packed = (given: unknown): Uint8Array => encode(given, { useBigInt64: true });

test("law: a value ends where it was written to, whatever follows, and one that is cut is refused", () => {
  fc.assert(
    fc.property(value, fc.uint8Array({ maxLength: 9 }), fc.nat(), (given, more, cut) => {
      const bytes = packed(given);
      assert.equal(atOnce(valueEnd(Buffer.concat([bytes, more]), 0)), bytes.length);
      assert.throws(() => atOnce(valueEnd(bytes.subarray(0, cut % bytes.length), 0)), ValueError);
      const head = listHead(bytes, 0);
      assert.equal(head?.count, Array.isArray(given) ? given.length : undefined);
    }),
  );
});

test("long values, of every width of their length", () => {
  for (const length of [0, 31, 32, 255, 256, 65_535, 65_536, 100_000]) {
    for (const given of ["x".repeat(length), new Uint8Array(length), Array.from({ length }, () => 1)]) {
      const bytes = packed([given, 1]);
      assert.equal(atOnce(valueEnd(bytes, 0)), bytes.length);
    }
  }
  const map = packed(Object.fromEntries(Array.from({ length: 70_000 }, (_, i) => [`k${i}`, i])));
  assert.equal(atOnce(valueEnd(map, 0)), map.length);
});

test("what is nested more than an event, or is no value, is refused at once", () => {
  assert.throws(
    () => atOnce(valueEnd(new Uint8Array(1_000_000).fill(0x91), 0)),
    /at most 16 values within one another/,
  );
  for (const tag of [0xc1, 0xc7, 0xc8, 0xc9, 0xd4, 0xd8])
    assert.throws(() => atOnce(valueEnd(Uint8Array.of(tag, 0, 0, 0), 0)), ValueError);
});
