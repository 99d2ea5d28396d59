import { hash } from "blake3-wasm";
import Table from "cli-table3";
import { blake3Hasher, fastHasher } from "#core/prompt/block-hash.ts";
import { randomFor } from "#core/random.ts";

/**
 * Median time per block of hashing one chain, for the block sizes in use.
 * Run: `npx node bench/block-hash.ts`
 */

const VALUE_WORDS = 8;
const WORDS = 1 << 16;
const ROUNDS = 60;
/** 16 tokens; 128 bytes; 64 tokens; 512 tokens, which takes a tree of three chunks. */
const BLOCK_WORDS = [16, 32, 64, 512];

const random = randomFor(1, 1);
const words = Int32Array.from({ length: WORDS }, () => random.below(0x1_0000_0000));

const table = new Table({
  head: ["words a block", "blake3 ns", "fast ns", "blake3-wasm ns", "wasm / blake3"],
  style: { head: [], border: [], compact: true },
});
for (const blockWords of BLOCK_WORDS) {
  const blocks = Math.floor(WORDS / blockWords);
  const hashes = new Int32Array(2 * blocks);
  const value = new Int32Array(VALUE_WORDS);
  const [slow, fast] = [blake3Hasher(blockWords), fastHasher(blockWords)];
  const blake3 = medianNanos(blocks, () => slow.extend(value, words, 0, blocks, hashes, 0));
  const mix = medianNanos(blocks, () => fast.extend(value, words, 0, blocks, hashes, 0));
  const wasm = medianNanos(blocks, () => chainByWasm(blockWords, blocks));
  table.push([blockWords, ...[blake3, mix, wasm].map((nanos) => nanos.toFixed(1)), (wasm / blake3).toFixed(2)]);
}
console.log(table.toString());

function medianNanos(blocks: number, run: () => void): number {
  for (let i = 0; i < ROUNDS / 2; i++) run();
  const times = Array.from({ length: ROUNDS }, () => {
    const started = performance.now();
    run();
    return (1e6 * (performance.now() - started)) / blocks;
  });
  return times.toSorted((a, b) => a - b)[ROUNDS / 2]!;
}

function chainByWasm(blockWords: number, blocks: number): void {
  const input = new Uint8Array(4 * (VALUE_WORDS + blockWords));
  const text = new Uint8Array(words.buffer);
  for (let block = 0; block < blocks; block++) {
    input.set(text.subarray(4 * block * blockWords, 4 * (block + 1) * blockWords), 4 * VALUE_WORDS);
    input.set(Buffer.from(hash(Buffer.from(input.buffer))));
  }
}
