import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { decodeHashes, encodeHashes } from "#trace/codec/hash-text.ts";

test("hashes are read and written the same without the base64 that Node 24 lacks", async (t) => {
  const native = Object.getOwnPropertyDescriptor(Uint8Array, "fromBase64");
  t.after(() => native && Object.defineProperty(Uint8Array, "fromBase64", native));
  Reflect.deleteProperty(Uint8Array, "fromBase64");
  const without = (await import(`${import.meta.dirname}/../../../src/trace/codec/hash-text.ts?without`)) as {
    encodeHashes: typeof encodeHashes;
    decodeHashes: typeof decodeHashes;
  };
  if (native !== undefined) Object.defineProperty(Uint8Array, "fromBase64", native);
  fc.assert(
    fc.property(fc.array(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })), fc.nat(3), (words, skipped) => {
      const even = words.slice(0, words.length - (words.length % 2));
      const hashes = new Int32Array([...Array.from({ length: skipped }, () => 7), ...even]).subarray(skipped);
      const text = encodeHashes(hashes);
      assert.equal(without.encodeHashes(hashes), text);
      assert.deepEqual(without.decodeHashes(text, "x"), hashes);
      assert.deepEqual(decodeHashes(text, "x"), hashes);
    }),
  );
  for (const wrong of ["!", "AAAA", "AAAAAAAAA!A=", "AAAA AAAA!!!"]) {
    for (const decode of [decodeHashes, without.decodeHashes])
      assert.throws(() => decode(wrong, "x.lanes"), /x\.lanes: expected base64/);
  }
});
