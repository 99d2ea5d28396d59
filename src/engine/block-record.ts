/**
 * What is known of each KV block, in one array: a block's fields lie in one cache line, and a simulated cluster's
 * blocks are more than a processor's caches hold.
 */
export type BlockRecords = Int32Array;

/** Words per block. Field f of block b is at b * BLOCK_WORDS + f. */
export const BLOCK_WORDS = 8;

/** Neighbours in a list. */
export const NEXT = 0;
export const PREVIOUS = 1;
/** Sequences that hold the block. */
export const REFERENCES = 2;
/** One of NOTHING, PARTIAL, HASHED, ANONYMOUS. */
export const CONTENT = 3;
/** Place of its content in the index, while it is HASHED. */
export const SLOT = 4;
/** Next block with the same content plus 1, or 0. */
export const TWIN = 5;
/** The content's two words, while it is HASHED. */
export const LOW = 6;
export const HIGH = 7;

/** No block at all, nothing whole, a full block with a known hash, a full block whose hash nobody gave. */
export const NOTHING = 0;
export const PARTIAL = 1;
export const HASHED = 2;
export const ANONYMOUS = 3;

/** Records of blocks 0 to blocks - 1, and one more for the sentinel of a list. */
export function createRecords(blocks: number): BlockRecords {
  return new Int32Array((blocks + 1) * BLOCK_WORDS);
}
