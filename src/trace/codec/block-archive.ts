import { TABLE_BLOCKS_MAX } from "./block-table.ts";

const CAPACITY_AT_START = 4096;
const ABSENT = -2;
const HEAD = -1;

/** The reader's side of BlockTable: blocks by the number that they were written under. */
export class BlockArchive {
  #hashes = new Int32Array(2 * CAPACITY_AT_START);
  /** Number of the block before each; HEAD at a chain's head, ABSENT for a number that was not read. */
  #parents = new Int32Array(CAPACITY_AT_START).fill(ABSENT);
  #depths = new Int32Array(CAPACITY_AT_START);

  clear(): void {
    this.#parents.fill(ABSENT);
  }

  /**
   * Stores blocks under the numbers from `first` on, the first of them following block `parent` (-1 for none), and
   * returns the hashes of the whole chain. Undefined when a number is out of bounds or an ancestor was never read. A parent
   * has a smaller number than what follows it, so a chain ends.
   */
  add(parent: number, first: number, added: Int32Array): Int32Array | undefined {
    const count = added.length / 2;
    if (parent >= first || first + count > TABLE_BLOCKS_MAX) return undefined;
    if (parent >= 0 && !this.#has(parent)) return undefined;
    this.#reserve(first + count);
    const depth = parent >= 0 ? this.#depths[parent]! + 1 : 0;
    for (let i = 0; i < count; i++) {
      this.#parents[first + i] = i > 0 ? first + i - 1 : parent >= 0 ? parent : HEAD;
      this.#depths[first + i] = depth + i;
    }
    this.#hashes.set(added, 2 * first);
    return this.#chain(parent, depth, added);
  }

  #chain(parent: number, depth: number, added: Int32Array): Int32Array | undefined {
    const hashes = new Int32Array(2 * depth + added.length);
    hashes.set(added, 2 * depth);
    let number = parent;
    for (let i = depth - 1; i >= 0; i--) {
      if (!this.#has(number)) return undefined;
      hashes[2 * i] = this.#hashes[2 * number]!;
      hashes[2 * i + 1] = this.#hashes[2 * number + 1]!;
      number = this.#parents[number]!;
    }
    return number === HEAD ? hashes : undefined;
  }

  #has(number: number): boolean {
    return number >= 0 && number < this.#parents.length && this.#parents[number] !== ABSENT;
  }

  #reserve(blocks: number): void {
    let capacity = this.#parents.length;
    if (blocks <= capacity) return;
    while (capacity < blocks) capacity *= 2;
    const hashes = new Int32Array(2 * capacity);
    hashes.set(this.#hashes);
    const parents = new Int32Array(capacity).fill(ABSENT);
    parents.set(this.#parents);
    const depths = new Int32Array(capacity);
    depths.set(this.#depths);
    [this.#hashes, this.#parents, this.#depths] = [hashes, parents, depths];
  }
}
