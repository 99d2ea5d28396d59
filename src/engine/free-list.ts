import { assert } from "#core/assert.ts";
import { BLOCK_WORDS, type BlockRecords, NEXT, PREVIOUS } from "./block-record.ts";

/** Blocks that nobody uses, in the order in which they will be overwritten: a doubly linked ring. */
export class FreeList {
  /** Number of blocks in the list. */
  size = 0;
  readonly #records: BlockRecords;
  /** The sentinel that closes the ring. */
  readonly #end: number;

  /** Starts with blocks 0 to blocks - 1, in this order. */
  constructor(records: BlockRecords, blocks: number) {
    this.#records = records;
    this.#end = blocks;
    records[blocks * BLOCK_WORDS + NEXT] = blocks;
    records[blocks * BLOCK_WORDS + PREVIOUS] = blocks;
    for (let block = 0; block < blocks; block++) this.pushBack(block);
  }

  pushBack(block: number): void {
    this.#link(block, this.#records[this.#end * BLOCK_WORDS + PREVIOUS] as number, this.#end);
  }

  pushFront(block: number): void {
    this.#link(block, this.#end, this.#records[this.#end * BLOCK_WORDS + NEXT] as number);
  }

  /** Takes the block out, wherever it is. */
  remove(block: number): void {
    const records = this.#records;
    const next = records[block * BLOCK_WORDS + NEXT] as number;
    const previous = records[block * BLOCK_WORDS + PREVIOUS] as number;
    records[previous * BLOCK_WORDS + NEXT] = next;
    records[next * BLOCK_WORDS + PREVIOUS] = previous;
    this.size--;
  }

  /** Takes the first block out; there must be one. */
  popFront(): number {
    const block = this.#records[this.#end * BLOCK_WORDS + NEXT] as number;
    assert(block !== this.#end, "a block is free");
    this.remove(block);
    return block;
  }

  #link(block: number, previous: number, next: number): void {
    const records = this.#records;
    records[block * BLOCK_WORDS + NEXT] = next;
    records[block * BLOCK_WORDS + PREVIOUS] = previous;
    records[previous * BLOCK_WORDS + NEXT] = block;
    records[next * BLOCK_WORDS + PREVIOUS] = block;
    this.size++;
  }
}
