import type { Insertion } from "./prefix-index.ts";

/** What an approximate index needs to take an insertion back. */
export class Receipt implements Insertion {
  readonly slot: number;
  /** Number of the insertion. */
  readonly stamp: number;
  /** The chain's deepest holding when it was inserted. */
  readonly deepest: number;
  /** Leading blocks that the endpoint held before. */
  readonly held: number;

  constructor(slot: number, stamp: number, deepest: number, held: number) {
    this.slot = slot;
    this.stamp = stamp;
    this.deepest = deepest;
    this.held = held;
  }
}
