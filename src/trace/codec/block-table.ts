import type { BlockChain } from "#core/prompt/block-chain.ts";

/** A chain as it is written: the number of its last block that was written before, and the blocks that are new. */
export interface ChainSplit {
  /** Number of the last known block; -1 when none is known. */
  readonly parent: number;
  /** Number that the first new block gets. */
  readonly first: number;
  /** Blocks of the chain that are known, from its head. */
  readonly known: number;
}

/** Blocks that a table may hold. Above it the table starts afresh, and live chains are written whole once more. */
export const TABLE_BLOCKS_MAX = 1_048_576;

const CAPACITY_AT_START = 4096;

/**
 * Blocks that were written to a segment, numbered in order of writing.
 *
 * A chain hash stands for its whole prefix, so when a block is known all before it are, and the last known one is found
 * by bisection. Two different prefixes with the same 64-bit hash would be mistaken for each other: with the table full,
 * the chance is below 2^40 / 2^65 per table.
 */
export class BlockTable {
  readonly #blocksMax: number;
  /** Two words per block, as in BlockChain. */
  #hashes = new Int32Array(2 * CAPACITY_AT_START);
  /** Position of each block in its chain, from 0. */
  #depths = new Int32Array(CAPACITY_AT_START);
  /** Open addressing: number of the block plus 1, 0 for a free place. Twice as many places as blocks, or more. */
  #places = new Int32Array(2 * CAPACITY_AT_START);
  #size = 0;

  constructor(blocksMax: number = TABLE_BLOCKS_MAX) {
    this.#blocksMax = blocksMax;
  }

  get size(): number {
    return this.#size;
  }

  /** Whether the chain can be added without starting afresh. A chain longer than the table never can. */
  fits(chain: BlockChain): boolean {
    return this.#size + chain.length <= this.#blocksMax;
  }

  clear(): void {
    this.#hashes = new Int32Array(2 * CAPACITY_AT_START);
    this.#depths = new Int32Array(CAPACITY_AT_START);
    this.#places = new Int32Array(2 * CAPACITY_AT_START);
    this.#size = 0;
  }

  /** Finds the chain's last known block and numbers the others. */
  add(chain: BlockChain): ChainSplit {
    const known = this.#knownBlocks(chain);
    const first = this.#size;
    const parent = known === 0 ? -1 : this.#find(chain, known - 1);
    this.#reserve(first + chain.length - known);
    for (let i = known; i < chain.length; i++) this.#append(chain.hashes[2 * i]!, chain.hashes[2 * i + 1]!, i);
    return { parent, first, known };
  }

  /** Length of the longest known head of the chain. */
  #knownBlocks(chain: BlockChain): number {
    let known = 0;
    let unknown = chain.length + 1;
    while (unknown - known > 1) {
      const middle = (known + unknown) >> 1;
      if (this.#find(chain, middle - 1) >= 0) known = middle;
      else unknown = middle;
    }
    return known;
  }

  /** Number of the chain's block at `depth`; -1 when it is not known. */
  #find(chain: BlockChain, depth: number): number {
    const low = chain.hashes[2 * depth]!;
    const high = chain.hashes[2 * depth + 1]!;
    const mask = this.#places.length - 1;
    for (let place = low & mask; ; place = (place + 1) & mask) {
      const number = this.#places[place]! - 1;
      if (number < 0) return -1;
      if (this.#hashes[2 * number] === low && this.#hashes[2 * number + 1] === high && this.#depths[number] === depth)
        return number;
    }
  }

  #append(low: number, high: number, depth: number): void {
    const number = this.#size++;
    this.#hashes[2 * number] = low;
    this.#hashes[2 * number + 1] = high;
    this.#depths[number] = depth;
    this.#place(number, low);
  }

  #place(number: number, low: number): void {
    const mask = this.#places.length - 1;
    let place = low & mask;
    while (this.#places[place] !== 0) place = (place + 1) & mask;
    this.#places[place] = number + 1;
  }

  #reserve(blocks: number): void {
    let capacity = this.#depths.length;
    if (blocks <= capacity) return;
    while (capacity < blocks) capacity *= 2;
    const hashes = new Int32Array(2 * capacity);
    hashes.set(this.#hashes);
    const depths = new Int32Array(capacity);
    depths.set(this.#depths);
    this.#hashes = hashes;
    this.#depths = depths;
    this.#places = new Int32Array(2 * capacity);
    for (let number = 0; number < this.#size; number++) this.#place(number, hashes[2 * number]!);
  }
}
