/**
 * What a block hands to the next: 8 words. The first parent is the root, which the host derives from model, adapter and
 * salt.
 */
export type ChainValue = Int32Array;

/** Hashes full blocks, each over the chain value before it. One instance serves one caller at a time. */
export interface BlockHasher {
  /** 32-bit words hashed per block: its tokens, or its bytes divided by 4. */
  readonly blockWords: number;
  /**
   * Continues a chain by `blocks` full blocks, read from `words` at `firstWord`. `value` is read as the parent and left
   * holding the last chain value. Writes two hashes per block, low word first, to `hashes` from block `firstBlock` on.
   */
  extend(
    value: ChainValue,
    words: Int32Array,
    firstWord: number,
    blocks: number,
    hashes: Int32Array,
    firstBlock: number,
  ): void;
}
