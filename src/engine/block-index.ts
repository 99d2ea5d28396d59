import { mix32 } from "#core/random.ts";

const NONE = -1;

/**
 * Content of blocks to block number. Several blocks may hold the same content (two requests that computed it side by
 * side); a lookup gives the one that was entered first, as vLLM's does. Open addressing with linear probing over block
 * numbers; the words are kept per block, so the table itself holds one integer per slot.
 */
export class BlockIndex {
  /** Distinct contents. */
  size = 0;
  readonly #table: Int32Array;
  readonly #mask: number;
  readonly #low: Int32Array;
  readonly #high: Int32Array;
  /** Next block with the same content. */
  readonly #twin: Int32Array;

  readonly #lastWriter: boolean;

  /** With `lastWriter` an equal content takes the entry over, and the entry goes with whichever block is removed. */
  constructor(blocks: number, lastWriter: boolean) {
    this.#lastWriter = lastWriter;
    let slots = 16;
    while (slots < blocks * 2) slots *= 2;
    this.#table = new Int32Array(slots).fill(NONE);
    this.#mask = slots - 1;
    this.#low = new Int32Array(blocks);
    this.#high = new Int32Array(blocks);
    this.#twin = new Int32Array(blocks).fill(NONE);
  }

  /** The block that holds this content, or -1. */
  find(low: number, high: number): number {
    return this.#table[this.#slotOf(low, high)] ?? NONE;
  }

  insert(block: number, low: number, high: number): void {
    this.#low[block] = low;
    this.#high[block] = high;
    this.#twin[block] = NONE;
    const slot = this.#slotOf(low, high);
    let last = this.#table[slot] ?? NONE;
    if (last === NONE || this.#lastWriter) {
      this.#table[slot] = block;
      if (last === NONE) this.size++;
      return;
    }
    for (let twin = last; twin !== NONE; twin = this.#twin[twin] ?? NONE) last = twin;
    this.#twin[last] = block;
  }

  /** Removes this block, which must be in the index; its twins stay. */
  remove(block: number): void {
    const slot = this.#slotOf(this.low(block), this.high(block));
    const first = this.#table[slot] ?? NONE;
    const twin = this.#twin[block] ?? NONE;
    if (this.#lastWriter) {
      if (first !== NONE) this.#close(slot);
    } else if (first !== block) {
      let before = first;
      while (this.#twin[before] !== block) before = this.#twin[before] ?? NONE;
      this.#twin[before] = twin;
    } else if (twin !== NONE) {
      this.#table[slot] = twin;
    } else {
      this.#close(slot);
    }
  }

  low(block: number): number {
    return this.#low[block] ?? 0;
  }

  high(block: number): number {
    return this.#high[block] ?? 0;
  }

  /** Slot of the content, or the empty slot where it belongs. */
  #slotOf(low: number, high: number): number {
    let slot = this.#home(low, high);
    for (;;) {
      const block = this.#table[slot] ?? NONE;
      if (block === NONE || (this.#low[block] === low && this.#high[block] === high)) return slot;
      slot = (slot + 1) & this.#mask;
    }
  }

  /** Empties the slot and moves later entries of its cluster back, so that probing needs no tombstones. */
  #close(emptied: number): void {
    this.size--;
    let hole = emptied;
    for (let slot = (hole + 1) & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const block = this.#table[slot] ?? NONE;
      if (block === NONE) break;
      const home = this.#home(this.low(block), this.high(block));
      if (((slot - home) & this.#mask) < ((slot - hole) & this.#mask)) continue;
      this.#table[hole] = block;
      hole = slot;
    }
    this.#table[hole] = NONE;
  }

  #home(low: number, high: number): number {
    return mix32(low ^ Math.imul(high, 0x9e3779b1)) & this.#mask;
  }
}
