/**
 * A prompt as the router knows it: the chained hashes of its full blocks, in order. Hash i stands for everything up to
 * and including block i, so two prompts share a prefix of exactly as many blocks as their chains share entries.
 *
 * `hashes` holds two 32-bit words per block, low then high: block i is (hashes[2i], hashes[2i + 1]). A partial last block
 * has no hash.
 */
export interface BlockChain {
  readonly hashes: Int32Array;
  /** Number of full blocks. */
  readonly length: number;
  /** Tokens that one block stands for; a fraction where blocks are cut by bytes and tokens are estimated. */
  readonly blockTokens: number;
}

export const EMPTY_CHAIN: BlockChain = { hashes: new Int32Array(0), length: 0, blockTokens: 16 };

/** The chain with blocks behind it: two words each, chained on from its last one. */
export function continued({ hashes, length, blockTokens }: BlockChain, more: Int32Array): BlockChain {
  const whole = new Int32Array(2 * length + more.length);
  whole.set(hashes.subarray(0, 2 * length));
  whole.set(more, 2 * length);
  return { hashes: whole, length: whole.length / 2, blockTokens };
}
