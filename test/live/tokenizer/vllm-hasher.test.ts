import assert from "node:assert/strict";
import { test } from "node:test";
import { type VllmHash, vllmHasher, vllmRoot } from "#live/tokenizer/vllm-hasher.ts";

/** Tokens on both sides of each width that the forms know, in two blocks of four. */
const WIDTHS = [1, 255, 256, 65_535, 65_536, 2_147_483_647, 0, 23];
const SMALL = [24, 1_000, 70_000, 3, 5, 6, 7, 8];

/**
 * By Python 3.11, the last 64 bits of each block: `sha256(pickle.dumps((parent, tokens, None), protocol=5))`, and the same
 * of canonical CBOR (RFC 8949), each chain from the digest of its seed in the same form.
 */
const VECTORS: readonly (readonly [VllmHash, string | undefined, readonly number[], readonly string[]])[] = [
  ["sha256", "0", WIDTHS, ["c3a44c4502ef9ee8", "c60b18b8d56cd439"]],
  ["sha256", undefined, SMALL, ["b42274fa4c365d25", "380d693f6f084e9a"]],
  ["sha256_cbor", "0", WIDTHS, ["b166c489200110f6", "111ce81b42a98cd7"]],
  ["sha256_cbor", undefined, SMALL, ["fcc10d504f591768", "077d81fe9ea5d60a"]],
];

for (const [algorithm, seed, tokens, expected] of VECTORS)
  test(`${algorithm} over blocks of tokens is what Python makes of them, seed ${seed ?? "not set"}`, () => {
    const hashes = new Int32Array(4);
    const value = vllmRoot(algorithm, seed);
    const hasher = vllmHasher(algorithm)(4);
    const words = Int32Array.from([-1, ...tokens]);
    hasher.extend(value, words, 1, 1, hashes, 0);
    hasher.extend(value, words, 5, 1, hashes, 1);
    const hex = (word: number) => (word >>> 0).toString(16).padStart(8, "0");
    assert.deepEqual(
      [0, 1].map((block) => hex(hashes[2 * block + 1]!) + hex(hashes[2 * block]!)),
      expected,
    );
  });

test("a seed and a block beyond what the forms hold are refused with what is accepted", () => {
  assert.throws(() => vllmRoot("sha256", "x".repeat(256)), /the seed has 256 bytes; accepted are 255 at most/);
  for (const blockWords of [0, 1.5, 8_193]) {
    assert.throws(() => vllmHasher("sha256_cbor")(blockWords), /accepted is an integer from 1 to 8192/);
  }
});
