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
/** Of a chain's blocks, those at a depth that this divides can be found by their hash. */
const FOUND_EVERY = 16;

/**
 * Blocks that were written to a segment, numbered in order of writing.
 *
 * A chain hash stands for its whole prefix, so when a block is known all before it are. Few blocks are found by their
 * hash, as each takes a place that is in no cache of the processor: those at every 16th depth, the last known of which is
 * found by bisection, and the first of those that were written together; the others follow on one that was found. Two
 * different prefixes with the same 64-bit hash would be mistaken for each other: with the table full, the chance is below
 * 2^40 / 2^65 per table.
 */
export class BlockTable {
  readonly #blocksMax: number;
  /** Two words per block, as in BlockChain. */
  #hashes = new Int32Array(2 * CAPACITY_AT_START);
  /** Position of each block in its chain, from 0. */
  #depths = new Int32Array(CAPACITY_AT_START);
  /** Open addressing: number of a block plus 1, 0 for a free place. Twice as many places as are taken, or more. */
  #places = new Int32Array(CAPACITY_AT_START);
  #placesTaken = 0;
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
    this.#places = new Int32Array(CAPACITY_AT_START);
    this.#placesTaken = 0;
    this.#size = 0;
  }

  /** Finds the chain's last known block and numbers the others. */
  add(chain: BlockChain): ChainSplit {
    const { parent, known } = this.#known(chain);
    const first = this.#size;
    const added = chain.length - known;
    this.#reserve(first + added);
    this.#hashes.set(chain.hashes.subarray(2 * known, 2 * chain.length), 2 * first);
    for (let i = 0; i < added; i++) {
      const depth = known + i;
      this.#depths[first + i] = depth;
      if (i === 0 || depth % FOUND_EVERY === 0) this.#place(first + i);
    }
    this.#size = first + added;
    return { parent, first, known };
  }

  /** Number of the last known block, -1 for none, and how many are known from the chain's head. */
  #known(chain: BlockChain): { parent: number; known: number } {
    let parent = -1;
    let low = -1;
    let high = Math.ceil(chain.length / FOUND_EVERY);
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      const number = this.#find(chain, middle * FOUND_EVERY);
      if (number < 0) high = middle;
      else {
        low = middle;
        parent = number;
      }
    }
    if (parent < 0) return { parent, known: 0 };
    for (let known = low * FOUND_EVERY + 1; ; known++) {
      if (known === chain.length) return { parent, known };
      const next = this.#is(parent + 1, chain, known) ? parent + 1 : this.#find(chain, known);
      if (next < 0) return { parent, known };
      parent = next;
    }
  }

  /** Number of the chain's block at `depth`; -1 when it is not known, or not found by its hash. */
  #find(chain: BlockChain, depth: number): number {
    const mask = this.#places.length - 1;
    for (let place = chain.hashes[2 * depth]! & mask; ; place = (place + 1) & mask) {
      const number = this.#places[place]! - 1;
      if (number < 0 || this.#is(number, chain, depth)) return number;
    }
  }

  /** Whether the block of this number is the chain's at `depth`. */
  #is(number: number, { hashes }: BlockChain, depth: number): boolean {
    return (
      number < this.#size &&
      this.#hashes[2 * number] === hashes[2 * depth] &&
      this.#hashes[2 * number + 1] === hashes[2 * depth + 1] &&
      this.#depths[number] === depth
    );
  }

  #place(number: number): void {
    if (2 * ++this.#placesTaken > this.#places.length) {
      const before = this.#places;
      this.#places = new Int32Array(2 * before.length);
      for (const taken of before) if (taken !== 0) this.#put(taken);
    }
    this.#put(number + 1);
  }

  #put(taken: number): void {
    const mask = this.#places.length - 1;
    let place = this.#hashes[2 * (taken - 1)]! & mask;
    while (this.#places[place] !== 0) place = (place + 1) & mask;
    this.#places[place] = taken;
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
  }
}
