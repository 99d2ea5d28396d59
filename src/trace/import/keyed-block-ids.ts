import { createHash } from "node:crypto";
import { blake3Hasher } from "#core/prompt/block-hash.ts";

const ROOT_WORDS = 8;
const HIGH_IDS = 0x20_0000;

/**
 * Makes ids of a prompt's full blocks from one 32-bit word a token: 53 bits of BLAKE3 chains that begin at a root made
 * from `key`. Equal ids are equal prefixes. Throws a RangeError unless `blockTokens` is an integer in [1, 65536].
 */
export function keyedBlockIds(key: string, blockTokens: number): (words: Int32Array) => Float64Array {
  const hasher = blake3Hasher(blockTokens);
  const digest = createHash("sha256").update(key).digest();
  const root = Int32Array.from({ length: ROOT_WORDS }, (_, i) => digest.readInt32LE(4 * i));
  return (words) => {
    const length = Math.floor(words.length / blockTokens);
    const hashes = new Int32Array(2 * length);
    hasher.extend(root.slice(), words, 0, length, hashes, 0);
    return Float64Array.from({ length }, (_, i) => (hashes[2 * i]! >>> 0) * HIGH_IDS + (hashes[2 * i + 1]! >>> 11));
  };
}
