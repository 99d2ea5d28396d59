import { assert } from "#core/assert.ts";

/** Blocks that nobody uses, in the order in which they will be overwritten: doubly linked, in two arrays. */
export class FreeList {
  /** Number of blocks in the list. */
  size = 0;
  readonly #next: Int32Array;
  readonly #previous: Int32Array;
  /** Index of the sentinel that closes the ring. */
  readonly #end: number;

  /** Starts with blocks 0 to blocks - 1, in this order. */
  constructor(blocks: number) {
    this.#next = new Int32Array(blocks + 1);
    this.#previous = new Int32Array(blocks + 1);
    this.#end = blocks;
    this.#next[blocks] = blocks;
    this.#previous[blocks] = blocks;
    for (let block = 0; block < blocks; block++) this.pushBack(block);
  }

  pushBack(block: number): void {
    this.#link(block, this.#previous[this.#end] ?? 0, this.#end);
  }

  pushFront(block: number): void {
    this.#link(block, this.#end, this.#next[this.#end] ?? 0);
  }

  /** Takes the block out, wherever it is. */
  remove(block: number): void {
    const next = this.#next[block] ?? 0;
    const previous = this.#previous[block] ?? 0;
    this.#next[previous] = next;
    this.#previous[next] = previous;
    this.size--;
  }

  /** Takes the first block out; there must be one. */
  popFront(): number {
    const block = this.#next[this.#end] ?? 0;
    assert(block !== this.#end, "a block is free");
    this.remove(block);
    return block;
  }

  #link(block: number, previous: number, next: number): void {
    this.#next[block] = next;
    this.#previous[block] = previous;
    this.#next[previous] = block;
    this.#previous[next] = block;
    this.size++;
  }
}
