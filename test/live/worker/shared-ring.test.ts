import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { newRingMemory, SharedRing } from "#live/worker/shared-ring.ts";

test("whatever is written is read, in order and whole, over the end of the room and of 32 bits of places", () => {
  const step = fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.constant(undefined));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), fc.integer({ min: -64, max: 64 }), (steps, start) => {
      const memory = newRingMemory(128);
      new Int32Array(memory.places).fill(start);
      const [writer, reader] = [new SharedRing(memory), new SharedRing(memory)];
      const written: Uint8Array[] = [];
      let bytes = 0;
      const read = (): void => {
        const message = reader.read((length) => new Uint8Array(length));
        const expected = written.shift();
        assert.deepEqual(message, expected);
        if (expected !== undefined) bytes -= expected.length + 4;
      };
      for (const one of steps) {
        if (one === undefined) read();
        else if (writer.write(one)) {
          written.push(one);
          bytes += one.length + 4;
        } else assert.ok(bytes + one.length + 4 > 128, "only what does not fit is refused");
      }
      while (written.length > 0) read();
      assert.ok(reader.isEmpty);
    }),
  );
});

test("places go on past 2^31, as a ring that has run for long", () => {
  const memory = newRingMemory(64);
  new Int32Array(memory.places).fill(2 ** 31 - 3);
  const [writer, reader] = [new SharedRing(memory), new SharedRing(memory)];
  for (let i = 0; i < 50; i++) {
    const message = Uint8Array.from([i, i + 1, i + 2]);
    assert.ok(writer.write(message));
    assert.deepEqual(
      reader.read((length) => new Uint8Array(length)),
      message,
    );
  }
});
