import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { ChunkFraming, WholeChunk } from "#live/http/chunk-framing.ts";

const piece = fc.oneof(
  fc
    .tuple(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 0, max: 2 }), fc.boolean())
    .map(([bytes, zeros, upper]) => {
      const size = "0".repeat(zeros) + bytes.toString(16);
      return `${upper ? size.toUpperCase() : size}\r\n${"x".repeat(bytes)}\r\n`;
    }),
  fc.constantFrom(
    "0\r\n\r\n",
    "5\r\nhelloX\n",
    "5;a=b\r\nhello\r\n",
    "\r\n",
    "5\r\nhel",
    "zz\r\n",
    "000000005\r\nhello\r\n",
  ),
);

test("a chunk is whole exactly where a walk over it alone ends between two", () => {
  let found = 0;
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 5 }), fc.nat(20), (pieces, cut) => {
      const bytes = Buffer.from(pieces.join(""));
      const to = Math.max(0, bytes.length - cut);
      const chunk = new WholeChunk();
      let at = 0;
      while (chunk.at(bytes, at, to)) {
        found++;
        const framing = new ChunkFraming();
        const into = Buffer.alloc(64);
        assert.equal(framing.walk(bytes, at, chunk.next, into), chunk.next);
        assert.ok(framing.isBetween);
        assert.deepEqual(into.subarray(0, framing.payload), bytes.subarray(chunk.start, chunk.end));
        at = chunk.next;
      }
      // No chunk that ends before `to` was missed.
      for (let next = at + 1; next <= to; next++) {
        const framing = new ChunkFraming();
        assert.ok(framing.walk(bytes, at, next) < next || !framing.isBetween, `one ends at ${next}`);
      }
    }),
    { numRuns: 300 },
  );
  assert.ok(found > 100, `${found} were found`);
});
