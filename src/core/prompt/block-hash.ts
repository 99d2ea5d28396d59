import type { BlockHasher } from "./block-hasher.ts";
import { Blake3Hasher } from "./blake3-hasher.ts";
import { FastHasher } from "./fast-hasher.ts";

/** Words per block that a hasher takes: 256 KiB a block. */
export const BLOCK_WORDS_MAX = 65_536;

/**
 * Chain value i is BLAKE3(chain value i-1, words of block i), all words little-endian; the hashes are its first 64 bits.
 * Throws a RangeError unless `blockWords` is an integer in [1, 65536].
 */
export function blake3Hasher(blockWords: number): BlockHasher {
  checkBlockWords(blockWords);
  return new Blake3Hasher(blockWords);
}

/**
 * A keyed multiply-mix over two 32-bit hashes, several times cheaper than BLAKE3 and no cryptographic hash: who chooses
 * prompts can make two of them collide, which misroutes and nothing more.
 * Throws a RangeError unless `blockWords` is an integer in [1, 65536].
 */
export function fastHasher(blockWords: number): BlockHasher {
  checkBlockWords(blockWords);
  return new FastHasher(blockWords);
}

function checkBlockWords(blockWords: number): void {
  if (Number.isInteger(blockWords) && blockWords >= 1 && blockWords <= BLOCK_WORDS_MAX) return;
  throw new RangeError(`blockWords is ${blockWords}; accepted is an integer from 1 to ${BLOCK_WORDS_MAX}`);
}
