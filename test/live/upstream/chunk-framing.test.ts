import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { ChunkFraming } from "#live/http/chunk-framing.ts";

/** A chunk's payload and how its size is written. */
const chunk = fc
  .record({
    bytes: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 41, max: 5_000 })),
    of: fc.nat(255),
    zeros: fc.integer({ min: 0, max: 3 }),
    upper: fc.boolean(),
  })
  .map(({ bytes, of, zeros, upper }) => {
    const size = "0".repeat(zeros) + bytes.toString(16);
    const payload = Buffer.alloc(bytes, of);
    return { payload, wire: Buffer.concat([Buffer.from(upper ? size.toUpperCase() : size), CRLF, payload, CRLF]) };
  });
const CRLF = Buffer.from("\r\n");
const chunks = fc.array(chunk, { minLength: 0, maxLength: 8 });
const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 12 });

/** What was walked in pieces: the payload, and what a parser gets from where the walk stopped. */
function walked(
  wire: Buffer,
  shares: readonly number[],
): { payload: Buffer; rest: Buffer | undefined; framing: ChunkFraming } {
  const framing = new ChunkFraming();
  const places = [...shares.map((share) => Math.floor(share * wire.length)), wire.length].sort((a, b) => a - b);
  const payload: Buffer[] = [];
  let from = 0;
  for (const to of places) {
    const into = Buffer.alloc(3 + to - from);
    const stopped = framing.walk(wire, from, to, into, 3);
    payload.push(into.subarray(3, 3 + framing.payload));
    if (stopped < to)
      return {
        payload: Buffer.concat(payload),
        rest: Buffer.concat([Buffer.from(framing.torn), wire.subarray(stopped)]),
        framing,
      };
    from = to;
  }
  return { payload: Buffer.concat(payload), rest: undefined, framing };
}

test("whole chunks, torn anywhere, give their payload, and end between two", () => {
  fc.assert(
    fc.property(chunks, cuts, (all, shares) => {
      const { payload, rest, framing } = walked(Buffer.concat(all.map(({ wire }) => wire)), shares);
      assert.deepEqual(payload, Buffer.concat(all.map((one) => one.payload)));
      assert.equal(rest, undefined);
      assert.ok(framing.isBetween);
    }),
  );
});

test("the last chunk, and what is no plain chunk, is for a parser from its size on", () => {
  const behind = fc.constantFrom(
    "0\r\n\r\n",
    "000\r\na: b\r\n\r\n",
    "5;x=y\r\nhello\r\n",
    "5 \r\nhello\r\n",
    "\r\n",
    "x",
    "123456789\r\n",
    "5\n",
  );
  fc.assert(
    fc.property(chunks, behind, cuts, (all, last, shares) => {
      const { payload, rest } = walked(Buffer.concat([...all.map(({ wire }) => wire), Buffer.from(last)]), shares);
      assert.deepEqual(payload, Buffer.concat(all.map((one) => one.payload)));
      assert.equal(rest?.toString(), last);
    }),
  );
});

test("payload behind which a chunk goes on has its parser refuse the rest", () => {
  fc.assert(
    fc.property(chunks, fc.constantFrom("\n", "ab", "\rx", "0\r\n\r\n"), cuts, (all, wrong, shares) => {
      const wire = Buffer.concat([...all.map((one) => one.wire), Buffer.from(`5\r\nhello${wrong}`)]);
      const { payload, rest } = walked(wire, shares);
      assert.deepEqual(payload, Buffer.concat([...all.map((one) => one.payload), Buffer.from("hello")]));
      assert.equal(rest?.[0], 0);
    }),
  );
});
