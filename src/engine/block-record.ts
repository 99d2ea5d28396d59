/** What is known of each KV block of a tier, in one array: a block's fields lie in one cache line. */
export type BlockRecords = Int32Array;

/** Words per block. Field f of block b is at b * BLOCK_WORDS + f. */
export const BLOCK_WORDS = 8;

/** Neighbours in a list. */
export const NEXT = 0;
export const PREVIOUS = 1;
/** HASHED, or 0 while it holds nothing. */
export const CONTENT = 2;
/** Place of its content in the index, while it is HASHED. */
export const SLOT = 3;
/** The content's two words, while it is HASHED. */
export const LOW = 4;
export const HIGH = 5;

/** A full block with a known hash. */
export const HASHED = 1;

/** Records of blocks 0 to blocks - 1, and one more for the sentinel of a list. */
export function createRecords(blocks: number): BlockRecords {
  return new Int32Array((blocks + 1) * BLOCK_WORDS);
}
