import { assert } from "#core/base/assert.ts";
import { BLOCK_WORDS, type BlockRecords, NEXT, PREVIOUS } from "./block-record.ts";

/** Blocks in the order in which they will be overwritten: a doubly linked ring. */
export class BlockOrder {
  /** Number of blocks in the list. */
  size = 0;
  readonly #records: BlockRecords;
  /** The sentinel that closes the ring. */
  readonly #end: number;

  /** Starts empty; the record after those of the blocks is the sentinel's. */
  constructor(records: BlockRecords) {
    this.#records = records;
    this.#end = records.length / BLOCK_WORDS - 1;
    records[this.#end * BLOCK_WORDS + NEXT] = this.#end;
    records[this.#end * BLOCK_WORDS + PREVIOUS] = this.#end;
  }

  pushBack(block: number): void {
    this.#link(block, this.#records[this.#end * BLOCK_WORDS + PREVIOUS] as number, this.#end);
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
    assert(block !== this.#end, "a block is in order");
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
