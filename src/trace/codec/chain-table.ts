import { decodeHashes, encodeHashes } from "./hash-text.ts";
import { as, type FieldType, flag, integer, listOf, number, optional, pathOf, text } from "./field-type.ts";
import { record } from "./record-type.ts";

/** Base64 of chained hashes, 8 bytes a block. */
export const hashes: FieldType<Int32Array> = {
  write(value, to) {
    to.ascii('"');
    to.ascii(encodeHashes(value));
    to.ascii('"');
  },
  read: (value, parent, key, beside) => decodeHashes(text.read(value, parent, key, beside), pathOf(parent, key)),
};

/**
 * A prompt's blocks as a line has them: new ones, numbered in this segment from `first`, behind block number `parent`,
 * which is absent at a chain's head. Without `first` they have no numbers: the chain is larger than the whole table.
 */
export interface ChainRow {
  /** Absent where they are cut as most are. */
  readonly blockTokens?: number | undefined;
  /** Numbering starts afresh at this line. */
  readonly fresh?: true | undefined;
  readonly parent?: number | undefined;
  readonly first?: number | undefined;
  /** Absent where there is none. */
  readonly hashes?: Int32Array | undefined;
}

export const chainRow = record<ChainRow>({
  blockTokens: optional(number),
  fresh: flag,
  parent: optional(integer(0)),
  first: optional(integer(0)),
  hashes: optional(as("lanes", hashes)),
});

/** Those of all news of a peer, in their order. */
export const chainRows = listOf(chainRow);
