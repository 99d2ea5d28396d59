const WORD = 2 ** 32;

/** 53 bits of a block's hash as a number: among n blocks two are taken for one with a chance of n^2 / 2^54. */
export function blockKey(hashes: Int32Array, block: number): number {
  return (hashes[2 * block + 1]! & 0x1f_ffff) * WORD + (hashes[2 * block]! >>> 0);
}

/** Of a block's key, the low word of its hash, whole. */
export function lowWordOf(key: number): number {
  return key % WORD;
}
