import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { hash } from "blake3-wasm";
import { blake3Hasher, fastHasher } from "#core/prompt/block-hash.ts";
import { randomFor, type Random } from "#core/base/random.ts";

const SEED = 20260;
const VALUE_WORDS = 8;

const HASHERS = { blake3: blake3Hasher, fast: fastHasher };

describe("blake3Hasher", () => {
  /** 8 words of parent and a block: around one compress, one chunk, and trees of 2 to 17 chunks, complete and ragged. */
  const inputWords = [
    9, 10, 15, 16, 17, 23, 24, 25, 31, 32, 33, 40, 63, 64, 65, 136, 247, 248, 255, 256, 257, 264, 271, 272, 273, 511,
    512, 513, 520, 767, 768, 769, 1023, 1024, 1025, 1280, 1792, 2048, 2049, 4096, 4104, 4352,
  ];

  for (const words of inputWords) {
    it(`equals blake3-wasm on inputs of ${words * 4} bytes`, () => {
      const random = randomFor(SEED, words);
      const blockWords = words - VALUE_WORDS;
      const blocks = 3;
      const text = randomWords(random, blockWords * blocks);
      const root = randomWords(random, VALUE_WORDS);
      const value = root.slice();
      const hashes = new Int32Array(2 * blocks);
      blake3Hasher(blockWords).extend(value, text, 0, blocks, hashes, 0);
      const expected = chainByWasm(root, text, blockWords);
      assert.deepEqual([...hashes], expected.hashes, `seed ${SEED}`);
      assert.deepEqual([...value], [...expected.value], `seed ${SEED}`);
    });
  }

  it("equals blake3-wasm on a long chain of 16-token blocks", () => {
    const random = randomFor(SEED, 1);
    const text = randomWords(random, 16 * 600);
    const value = randomWords(random, VALUE_WORDS);
    const expected = chainByWasm(value, text, 16);
    const hashes = new Int32Array(2 * 600);
    blake3Hasher(16).extend(value, text, 0, 600, hashes, 0);
    assert.deepEqual([...hashes], expected.hashes);
  });

  it("handles every block size up to 80 words", () => {
    for (let blockWords = 1; blockWords <= 80; blockWords++) {
      const random = randomFor(SEED, 1000 + blockWords);
      const text = randomWords(random, blockWords * 2);
      const value = randomWords(random, VALUE_WORDS);
      const expected = chainByWasm(value, text, blockWords);
      const hashes = new Int32Array(4);
      blake3Hasher(blockWords).extend(value, text, 0, 2, hashes, 0);
      assert.deepEqual([...hashes], expected.hashes, `${blockWords} words`);
    }
  });
});

for (const [name, hasherFor] of Object.entries(HASHERS)) {
  describe(`${name} chain`, () => {
    it("does not depend on how it is cut into calls", () => {
      const random = randomFor(SEED, 2);
      for (let round = 0; round < 50; round++) {
        const blockWords = 1 + random.below(40);
        const blocks = 1 + random.below(30);
        const text = randomWords(random, blockWords * blocks + 5);
        const root = randomWords(random, VALUE_WORDS);
        const whole = new Int32Array(2 * blocks);
        const wholeValue = root.slice();
        const hasher = hasherFor(blockWords);
        hasher.extend(wholeValue, text, 0, blocks, whole, 0);

        const parts = new Int32Array(2 * blocks);
        const value = root.slice();
        for (let done = 0; done < blocks;) {
          const step = Math.min(blocks - done, random.below(4));
          hasher.extend(value, text, done * blockWords, step, parts, done);
          done += step;
        }
        assert.deepEqual(parts, whole);
        assert.deepEqual(value, wholeValue);
      }
    });

    it("shares exactly the blocks before the first difference, and none under another root", () => {
      const random = randomFor(SEED, 3);
      for (let round = 0; round < 100; round++) {
        const blocks = 12;
        const text = randomWords(random, 16 * blocks);
        const root = randomWords(random, VALUE_WORDS);
        const changedWord = random.below(text.length);
        const changed = text.slice();
        changed[changedWord]! ^= 1 << random.below(32);
        const otherRoot = root.slice();
        otherRoot[random.below(4)]! ^= 1 << random.below(32);

        const hashes = chain(hasherFor(16), root, text);
        assert.equal(sharedBlocks(hashes, chain(hasherFor(16), root, changed)), Math.floor(changedWord / 16));
        assert.equal(sharedBlocks(hashes, chain(hasherFor(16), otherRoot, text)), 0);
      }
    });

    it("never repeats a hash along a chain of zeros", () => {
      for (const blockWords of [1, 16]) {
        const hashes = chain(hasherFor(blockWords), new Int32Array(VALUE_WORDS), new Int32Array(1000 * blockWords));
        const distinct = new Set(Array.from({ length: 1000 }, (_, i) => `${hashes[2 * i]},${hashes[2 * i + 1]}`));
        assert.equal(distinct.size, 1000);
      }
    });

    it("writes only its own hashes", () => {
      const hashes = new Int32Array(12).fill(-7);
      hasherFor(4).extend(new Int32Array(VALUE_WORDS), new Int32Array(8), 0, 2, hashes, 2);
      assert.deepEqual([...hashes.subarray(0, 4)], [-7, -7, -7, -7]);
      assert.deepEqual([...hashes.subarray(8)], [-7, -7, -7, -7]);
    });

    it("refuses a block size out of range", () => {
      for (const blockWords of [0, -1, 1.5, 65_537, Number.NaN]) {
        assert.throws(() => hasherFor(blockWords), { name: "RangeError", message: /integer from 1 to 65536/ });
      }
    });
  });
}

describe("fastHasher", () => {
  it("has no collision, and per half as few as chance, over texts of one pattern", () => {
    const count = 60_000;
    const value = new Int32Array(VALUE_WORDS);
    const hashes = new Int32Array(2);
    const text = new Int32Array(16);
    const pairs = new Set<string>();
    const low = new Set<number>();
    const high = new Set<number>();
    const hasher = fastHasher(16);
    for (let i = 0; i < count; i++) {
      text.fill(i & 7);
      text[(i >>> 3) & 15] = i >>> 7;
      text[(i >>> 5) & 15] = i & 1023;
      text[15] = i;
      value.fill(0);
      hasher.extend(value, text, 0, 1, hashes, 0);
      pairs.add(`${hashes[0]},${hashes[1]}`);
      low.add(hashes[0]!);
      high.add(hashes[1]!);
    }
    assert.equal(pairs.size, count);
    // Chance alone loses n^2 / 2^33 = 0.4 of 60,000 draws from 2^32.
    assert.ok(low.size >= count - 6, `${count - low.size} collisions in the low half`);
    assert.ok(high.size >= count - 6, `${count - high.size} collisions in the high half`);
  });

  it("flips half of the output bits when one input bit flips", () => {
    const random = randomFor(SEED, 4);
    const flipsPerBit = new Int32Array(64);
    const rounds = 4000;
    for (let round = 0; round < rounds; round++) {
      const text = randomWords(random, 16);
      const before = chain(fastHasher(16), new Int32Array(VALUE_WORDS), text);
      text[random.below(16)]! ^= 1 << random.below(32);
      const after = chain(fastHasher(16), new Int32Array(VALUE_WORDS), text);
      for (let bit = 0; bit < 64; bit++) {
        flipsPerBit[bit]! += ((before[bit >>> 5]! ^ after[bit >>> 5]!) >>> (bit & 31)) & 1;
      }
    }
    // Six standard deviations of a fair coin over 4,000 tosses are 0.047.
    for (const flips of flipsPerBit) assert.ok(Math.abs(flips / rounds - 0.5) < 0.047, `${flips} of ${rounds}`);
  });
});

type Hasher = ReturnType<typeof blake3Hasher>;

function chain(hasher: Hasher, root: Int32Array, text: Int32Array): Int32Array {
  const blocks = text.length / hasher.blockWords;
  const hashes = new Int32Array(2 * blocks);
  hasher.extend(root.slice(), text, 0, blocks, hashes, 0);
  return hashes;
}

function sharedBlocks(left: Int32Array, right: Int32Array): number {
  let shared = 0;
  for (let i = 0; i < left.length; i += 2) {
    if (left[i] === right[i] && left[i + 1] === right[i + 1]) {
      assert.equal(shared, i / 2, "no block may match after one that differs");
      shared++;
    }
  }
  return shared;
}

function chainByWasm(root: Int32Array, text: Int32Array, blockWords: number) {
  const hashes: number[] = [];
  let value = root;
  for (let word = 0; word < text.length; word += blockWords) {
    const input = Buffer.concat([bytesOf(value), bytesOf(text.subarray(word, word + blockWords))]);
    const digest = Buffer.from(hash(input));
    value = Int32Array.from({ length: VALUE_WORDS }, (_, i) => digest.readInt32LE(4 * i));
    hashes.push(value[0]!, value[1]!);
  }
  return { value, hashes };
}

function bytesOf(words: Int32Array): Buffer {
  const bytes = Buffer.alloc(4 * words.length);
  words.forEach((word, i) => bytes.writeInt32LE(word, 4 * i));
  return bytes;
}

function randomWords(random: Random, count: number): Int32Array {
  return Int32Array.from({ length: count }, () => random.below(0x1_0000_0000));
}
