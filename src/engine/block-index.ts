import { mix32 } from "#core/random.ts";
import { BLOCK_WORDS, type BlockRecords, HIGH, LOW, SLOT, TWIN } from "./block-record.ts";

/** A slot is a block plus 1, or 0 for an empty slot, and the hash that says where it belongs. */
const SLOT_WORDS = 2;
const BLOCK = 0;
const HASH = 1;
/** The slot of a block that lost its place to a twin. */
const NOWHERE = -1;
/** Consecutive blocks of a chain that belong side by side: one cache line of slots. */
const GROUP = 8;

/**
 * Content of blocks to block number. Content is a place in a chain: block i of `lanes`, where equal words mean that all
 * blocks up to it are equal. Several blocks may hold the same content (two requests that computed it side by side); a
 * lookup gives the one that was entered first, as vLLM's does.
 *
 * Open addressing with linear probing. Where a block belongs is decided by the first block of its group in the chain,
 * so that a walk along a chain touches one cache line per group. A block's record says where it is.
 */
export class BlockIndex {
  /** Distinct contents. */
  size = 0;
  readonly #records: BlockRecords;
  readonly #table: Int32Array;
  readonly #mask: number;
  readonly #lastWriter: boolean;

  /** With `lastWriter` a lookup gives the block entered last, and no longer any once one of them was removed. */
  constructor(records: BlockRecords, blocks: number, lastWriter: boolean) {
    this.#records = records;
    this.#lastWriter = lastWriter;
    let slots = 16;
    while (slots < blocks * 4) slots *= 2;
    this.#table = new Int32Array(slots * SLOT_WORDS);
    this.#mask = slots - 1;
  }

  /** The block that holds block i of the chain, or -1. */
  find(lanes: Int32Array, i: number): number {
    const slot = this.#slotOf(hashOf(lanes, i), lanes[2 * i] as number, lanes[2 * i + 1] as number);
    return (this.#table[slot * SLOT_WORDS + BLOCK] as number) - 1;
  }

  /** `block` holds block i of the chain. */
  insert(block: number, lanes: Int32Array, i: number): void {
    const table = this.#table;
    const records = this.#records;
    const hash = hashOf(lanes, i);
    const low = lanes[2 * i] as number;
    const high = lanes[2 * i + 1] as number;
    const slot = this.#slotOf(hash, low, high);
    const first = table[slot * SLOT_WORDS + BLOCK] as number;
    const word = block * BLOCK_WORDS;
    records[word + SLOT] = slot;
    records[word + TWIN] = 0;
    records[word + LOW] = low;
    records[word + HIGH] = high;
    if (first === 0 || this.#lastWriter) {
      table[slot * SLOT_WORDS + BLOCK] = block + 1;
      table[slot * SLOT_WORDS + HASH] = hash;
      records[word + TWIN] = first;
      if (first === 0) this.size++;
      return;
    }
    let last = first;
    for (let twin = last; twin !== 0; twin = this.#twin(twin - 1)) last = twin;
    records[(last - 1) * BLOCK_WORDS + TWIN] = block + 1;
  }

  /** Removes this block, which must have been inserted; its twins stay. */
  remove(block: number): void {
    const slot = this.#records[block * BLOCK_WORDS + SLOT] as number;
    const first = this.#table[slot * SLOT_WORDS + BLOCK] as number;
    const twin = this.#twin(block);
    if (this.#lastWriter) {
      if (slot !== NOWHERE) this.#forgetAll(slot);
    } else if (first !== block + 1) {
      let before = first;
      while (this.#twin(before - 1) !== block + 1) before = this.#twin(before - 1);
      this.#records[(before - 1) * BLOCK_WORDS + TWIN] = twin;
    } else if (twin !== 0) {
      this.#table[slot * SLOT_WORDS + BLOCK] = twin;
    } else {
      this.#close(slot);
    }
  }

  /** False for a block that lost its place to a twin. */
  has(block: number): boolean {
    return this.#records[block * BLOCK_WORDS + SLOT] !== NOWHERE;
  }

  #forgetAll(slot: number): void {
    let block = this.#table[slot * SLOT_WORDS + BLOCK] as number;
    for (; block !== 0; block = this.#twin(block - 1)) this.#records[(block - 1) * BLOCK_WORDS + SLOT] = NOWHERE;
    this.#close(slot);
  }

  #twin(block: number): number {
    return this.#records[block * BLOCK_WORDS + TWIN] as number;
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
      for (let block = first; block !== 0; block = this.#twin(block - 1)) {
        this.#records[(block - 1) * BLOCK_WORDS + SLOT] = hole;
      }
      hole = slot;
    }
    table[hole * SLOT_WORDS + BLOCK] = 0;
  }
}

/** The group's place from its first block, then the place in the group. */
function hashOf(lanes: Int32Array, i: number): number {
  const first = i - (i % GROUP);
  const mixed = mix32((lanes[2 * first] as number) ^ Math.imul(lanes[2 * first + 1] as number, 0x9e3779b1));
  return (mixed & -GROUP) | (i % GROUP);
}
