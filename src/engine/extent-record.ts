/**
 * What is known of each extent, in one array. An extent is a row of blocks that share everything: consecutive in a
 * chain, held by the same sequences, one behind the other in the order of overwriting.
 */
export type ExtentRecords = Int32Array;

/** Words per extent, a cache line. Field f of extent e is at e * EXTENT_WORDS + f. */
export const EXTENT_WORDS = 16;

/** Stands for no extent; its record is the sentinel of the order. */
export const NO_EXTENT = 0;

/** Neighbours in the order of overwriting, while nobody holds it. For a record that is not used, the next such one. */
export const NEXT = 0;
export const PREVIOUS = 1;
/** Blocks, at least 1. */
export const LENGTH = 2;
/** Sequences that hold it. */
export const REFERENCES = 3;
/** One of OPAQUE, ALONE, TWINNED. */
export const STATE = 4;
/** The two words of its first block's content, unless it is OPAQUE. */
export const LOW = 5;
export const HIGH = 6;
/** Where its content begins in the hashes that are kept for it. */
export const OFFSET = 7;
/** The extent with the same content that was entered next, or NO_EXTENT. */
export const TWIN = 8;
/** The extent that was cut off its end last. */
export const REST = 9;
/** 1 when the hashes that are kept for it hold its content alone. */
export const COMPACT = 10;

/** Content of the last block, as far as the extent still has LAST_LENGTH blocks. */
export const LAST_LENGTH = 11;
export const LAST_LOW = 12;
export const LAST_HIGH = 13;

/** Nothing that can be found: partial blocks, or full ones whose hashes nobody gave. */
export const OPAQUE = 0;
/** Has its content to itself, as far as is known. */
export const ALONE = 1;
/** Others hold the same content, all of it: whatever cuts one cuts all. */
export const TWINNED = 2;

/** Extents with which records begin. An engine has as many as its traffic makes, often a hundredth of its blocks. */
const EXTENTS_FIRST = 31;

/** Records of the sentinel and a few extents. Whoever has more extents doubles them. */
export function createExtents(): ExtentRecords {
  return new Int32Array((EXTENTS_FIRST + 1) * EXTENT_WORDS);
}
