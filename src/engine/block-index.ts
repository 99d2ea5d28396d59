import { assert } from "#core/base/assert.ts";
import { mix32 } from "#core/base/random.ts";
import { BLOCK_WORDS, type BlockRecords, HIGH, LOW, SLOT } from "./block-record.ts";

/** A slot is a block plus 1, or 0 for an empty slot, and the hash that determines where it belongs. */
const SLOT_WORDS = 2;
const BLOCK = 0;
const HASH = 1;
/** Consecutive blocks of a chain that belong side by side: one cache line of slots. */
const GROUP = 8;

/**
 * Content of blocks to block number. Content is a place in a chain: block i of `hashes`, where equal words mean that all
 * blocks up to it are equal. Each content is here once.
 *
 * Open addressing with linear probing. Where a block belongs is decided by the first block of its group in the chain,
 * so that a walk along a chain touches one cache line per group. A block's record holds where it is.
 */
export class BlockIndex {
  /** Contents that are here. */
  size = 0;
  readonly #records: BlockRecords;
  readonly #table: Int32Array;
  readonly #mask: number;

  constructor(records: BlockRecords, blocks: number) {
    this.#records = records;
    let slots = 16;
    while (slots < blocks * 4) slots *= 2;
    this.#table = new Int32Array(slots * SLOT_WORDS);
    this.#mask = slots - 1;
  }

  /** The block that holds block i of the chain, or -1. */
  find(hashes: Int32Array, i: number): number {
    const slot = this.#slotOf(hashOf(hashes, i), hashes[2 * i] as number, hashes[2 * i + 1] as number);
    return (this.#table[slot * SLOT_WORDS + BLOCK] as number) - 1;
  }

  /** `block` holds block i of the chain, which none held before. */
  insert(block: number, hashes: Int32Array, i: number): void {
    const table = this.#table;
    const records = this.#records;
    const hash = hashOf(hashes, i);
    const low = hashes[2 * i] as number;
    const high = hashes[2 * i + 1] as number;
    const slot = this.#slotOf(hash, low, high);
    assert(table[slot * SLOT_WORDS + BLOCK] === 0, "a content is entered once");
    const word = block * BLOCK_WORDS;
    records[word + SLOT] = slot;
    records[word + LOW] = low;
    records[word + HIGH] = high;
    table[slot * SLOT_WORDS + BLOCK] = block + 1;
    table[slot * SLOT_WORDS + HASH] = hash;
    this.size++;
  }

  /** Removes this block, which must have been inserted. */
  remove(block: number): void {
    this.#close(this.#records[block * BLOCK_WORDS + SLOT] as number);
  }

  /** Slot of the content, or the empty slot where it belongs. */
  #slotOf(hash: number, low: number, high: number): number {
    const table = this.#table;
    const mask = this.#mask;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const first = table[slot * SLOT_WORDS + BLOCK] as number;
      if (first === 0) return slot;
      if (table[slot * SLOT_WORDS + HASH] !== hash) continue;
      const word = (first - 1) * BLOCK_WORDS;
      if (this.#records[word + LOW] === low && this.#records[word + HIGH] === high) return slot;
    }
  }

  /** Empties the slot and moves later entries of its cluster back, so that probing needs no tombstones. */
  #close(emptied: number): void {
    const table = this.#table;
    const mask = this.#mask;
    this.size--;
    let hole = emptied;
    for (let slot = (hole + 1) & mask; ; slot = (slot + 1) & mask) {
      const first = table[slot * SLOT_WORDS + BLOCK] as number;
      if (first === 0) break;
      const hash = table[slot * SLOT_WORDS + HASH] as number;
      if (((slot - hash) & mask) < ((slot - hole) & mask)) continue;
      table[hole * SLOT_WORDS + BLOCK] = first;
      table[hole * SLOT_WORDS + HASH] = hash;
      this.#records[(first - 1) * BLOCK_WORDS + SLOT] = hole;
      hole = slot;
    }
    table[hole * SLOT_WORDS + BLOCK] = 0;
  }
}

/** The group's place from its first block, then the place in the group. */
function hashOf(hashes: Int32Array, i: number): number {
  const first = i - (i % GROUP);
  const mixed = mix32((hashes[2 * first] as number) ^ Math.imul(hashes[2 * first + 1] as number, 0x9e3779b1));
  return (mixed & -GROUP) | (i % GROUP);
}
