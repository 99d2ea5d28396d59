import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ByteRun, viewOf } from "#live/answer/stream-answer.ts";

const bytes = fc.uint8Array({ maxLength: 40 });

test("a run is found where its bytes are, wherever that lies in memory, and not past the end", () => {
  fc.assert(
    fc.property(bytes, bytes, bytes, fc.nat(7), (before, run, behind, offset) => {
      const memory = Buffer.alloc(offset + before.length + run.length + behind.length);
      const all = memory.subarray(offset);
      all.set(before);
      all.set(run, before.length);
      all.set(behind, before.length + run.length);
      const own = new ByteRun(run);
      assert.equal(own.length, run.length);
      for (let at = 0; at <= all.length; at++) {
        const there = all.subarray(at, at + run.length);
        assert.equal(own.isAt(viewOf(all), at), Buffer.compare(there, run) === 0, `at ${at}`);
      }
    }),
  );
});

test("each byte of a run counts", () => {
  for (let length = 1; length <= 13; length++) {
    const run = Uint8Array.from({ length }, (_, i) => 0x80 + 7 * i);
    const own = new ByteRun(run);
    for (let i = 0; i < length; i++) {
      const other = Uint8Array.from(run);
      other[i]! ^= 0x80;
      assert.equal(own.isAt(viewOf(other), 0), false, `byte ${i} of ${length}`);
    }
    run.fill(0);
    assert.equal(own.isAt(viewOf(Uint8Array.from({ length }, (_, i) => 0x80 + 7 * i)), 0), true);
  }
});

test("the view is of the bytes that were given last, as they are now", () => {
  const [one, two] = [Uint8Array.of(1, 2, 3), Uint8Array.of(4, 5, 6)];
  const view = viewOf(one);
  assert.equal(viewOf(one), view);
  assert.equal(viewOf(two).getUint8(0), 4);
  one[0] = 9;
  assert.equal(viewOf(one).getUint8(0), 9);
});
