import { EXTENT_WORDS, type ExtentRecords, LENGTH, NEXT, NO_EXTENT, PREVIOUS } from "./extent-record.ts";

/** Extents in the order in which they will be overwritten, each from its last block to its first: a doubly linked ring. */
export class ExtentOrder {
  /** Number of blocks in the list. */
  blocks = 0;
  #records: ExtentRecords;

  /** Starts empty; the sentinel closes the ring. */
  constructor(records: ExtentRecords) {
    this.#records = records;
    records[NO_EXTENT * EXTENT_WORDS + NEXT] = NO_EXTENT;
    records[NO_EXTENT * EXTENT_WORDS + PREVIOUS] = NO_EXTENT;
  }

  /** The same records, where there is room for more of them. */
  move(records: ExtentRecords): void {
    this.#records = records;
  }

  /** The extent whose last block goes first, or NO_EXTENT. */
  get first(): number {
    return this.#records[NO_EXTENT * EXTENT_WORDS + NEXT] as number;
  }

  pushBack(extent: number): void {
    this.#link(extent, NO_EXTENT);
    this.blocks += this.#records[extent * EXTENT_WORDS + LENGTH] as number;
  }

  /** Takes the extent out, wherever it is. */
  remove(extent: number): void {
    const records = this.#records;
    const word = extent * EXTENT_WORDS;
    const next = records[word + NEXT] as number;
    const previous = records[word + PREVIOUS] as number;
    records[previous * EXTENT_WORDS + NEXT] = next;
    records[next * EXTENT_WORDS + PREVIOUS] = previous;
    this.blocks -= records[word + LENGTH] as number;
  }

  /** `tail` was cut off the end of `extent`, which is in the list, and goes before it. */
  cutOff(tail: number, extent: number): void {
    this.#link(tail, extent);
  }

  /** So many blocks of an extent in the list are no more. */
  shorten(blocks: number): void {
    this.blocks -= blocks;
  }

  #link(extent: number, next: number): void {
    const records = this.#records;
    const previous = records[next * EXTENT_WORDS + PREVIOUS] as number;
    records[extent * EXTENT_WORDS + NEXT] = next;
    records[extent * EXTENT_WORDS + PREVIOUS] = previous;
    records[previous * EXTENT_WORDS + NEXT] = extent;
    records[next * EXTENT_WORDS + PREVIOUS] = extent;
  }
}
