import { doubled } from "./doubled.ts";

export const NO_HOLDING = -1;

/**
 * Arrays of as many are made in place; beyond, each has memory of its own, which costs as much as the rest of an empty
 * pool.
 */
const HOLDINGS_MIN = 16;

/** What a pool needs to know of the segments that are held. Read anew at each use: the arrays are replaced as they grow. */
interface Segments {
  readonly length: Int32Array;
  readonly firstHolding: Int32Array;
}

/**
 * Who holds how much of which segment. A holding is one endpoint's leading blocks of one segment; all of them were last
 * touched by the same insertion, whose stamp it bears. Holdings of one endpoint form a list from the least to the most
 * recently touched, in which a child stands before its parent when both bear one stamp.
 */
export class HoldingPool {
  readonly #segments: Segments;
  segment = new Int32Array(HOLDINGS_MIN);
  slot = new Int32Array(HOLDINGS_MIN);
  /** Leading blocks of the segment that the endpoint holds, at least 1. */
  blocks = new Int32Array(HOLDINGS_MIN);
  /** The same endpoint's holding of the parent segment, or NO_HOLDING. For a free holding, the next free one. */
  parent = new Int32Array(HOLDINGS_MIN);
  /** Number of the insertion that touched it last, unique over all endpoints; 0 for a free holding. */
  stamp = new Float64Array(HOLDINGS_MIN);
  /** The other holdings of the segment. */
  next = new Int32Array(HOLDINGS_MIN);
  #previous = new Int32Array(HOLDINGS_MIN);
  /** The endpoint's other holdings, by age. */
  #older = new Int32Array(HOLDINGS_MIN);
  #newer = new Int32Array(HOLDINGS_MIN);
  #free = NO_HOLDING;
  #used = 0;
  #count = 0;
  /** Per slot. */
  readonly #oldest: number[] = [];
  readonly #newest: number[] = [];

  constructor(segments: Segments) {
    this.#segments = segments;
  }

  get count(): number {
    return this.#count;
  }

  get bytes(): number {
    return 8 * this.segment.byteLength + this.stamp.byteLength;
  }

  addSlot(slot: number): void {
    this.#oldest[slot] = NO_HOLDING;
    this.#newest[slot] = NO_HOLDING;
  }

  /** The slot's least recently touched holding, which has no child of that slot; NO_HOLDING when it has none. */
  oldest(slot: number): number {
    return this.#oldest[slot]!;
  }

  /** The slot's holding of the segment, or NO_HOLDING. */
  find(segment: number, slot: number): number {
    let holding = this.#segments.firstHolding[segment]!;
    while (holding !== NO_HOLDING && this.slot[holding] !== slot) holding = this.next[holding]!;
    return holding;
  }

  /** A new holding, the newest of its slot. */
  add(segment: number, slot: number, blocks: number, parent: number, stamp: number): number {
    const holding = this.#take(slot, blocks, parent, stamp);
    this.#join(holding, segment);
    this.#link(holding, this.#newest[slot]!);
    return holding;
  }

  /** Makes the holding the newest of its slot. */
  touch(holding: number, stamp: number): void {
    this.stamp[holding] = stamp;
    const newest = this.#newest[this.slot[holding]!]!;
    if (newest === holding) return;
    this.#unlink(holding);
    this.#link(holding, newest);
  }

  remove(holding: number): void {
    this.#unlink(holding);
    this.#depart(holding);
    this.stamp[holding] = 0;
    this.parent[holding] = this.#free;
    this.#free = holding;
    this.#count--;
  }

  /** Follows a split: whoever holds more than the head holds all of the head, as the parent of the rest. */
  split(segment: number, head: number): void {
    const headBlocks = this.#segments.length[head]!;
    this.#segments.firstHolding[head] = NO_HOLDING;
    let holding = this.#segments.firstHolding[segment]!;
    while (holding !== NO_HOLDING) {
      const next = this.next[holding]!;
      if (this.blocks[holding]! <= headBlocks) {
        this.#depart(holding);
        this.#join(holding, head);
      } else {
        const upper = this.#take(this.slot[holding]!, headBlocks, this.parent[holding]!, this.stamp[holding]!);
        this.#join(upper, head);
        this.#link(upper, holding);
        this.parent[holding] = upper;
        this.blocks[holding]! -= headBlocks;
      }
      holding = next;
    }
  }

  /** The most blocks of the segment that any endpoint holds. */
  blocksMax(segment: number): number {
    let most = 0;
    for (let h = this.#segments.firstHolding[segment]!; h !== NO_HOLDING; h = this.next[h]!) {
      if (this.blocks[h]! > most) most = this.blocks[h]!;
    }
    return most;
  }

  /** Number of endpoints that hold a part of the segment. */
  countOf(segment: number): number {
    let count = 0;
    for (let h = this.#segments.firstHolding[segment]!; h !== NO_HOLDING; h = this.next[h]!) count++;
    return count;
  }

  #take(slot: number, blocks: number, parent: number, stamp: number): number {
    let holding = this.#free;
    if (holding !== NO_HOLDING) {
      this.#free = this.parent[holding]!;
    } else {
      if (this.#used === this.segment.length) this.#grow();
      holding = this.#used++;
    }
    this.#count++;
    this.slot[holding] = slot;
    this.blocks[holding] = blocks;
    this.parent[holding] = parent;
    this.stamp[holding] = stamp;
    return holding;
  }

  #join(holding: number, segment: number): void {
    const first = this.#segments.firstHolding[segment]!;
    this.segment[holding] = segment;
    this.#previous[holding] = NO_HOLDING;
    this.next[holding] = first;
    if (first !== NO_HOLDING) this.#previous[first] = holding;
    this.#segments.firstHolding[segment] = holding;
  }

  #depart(holding: number): void {
    const previous = this.#previous[holding]!;
    const next = this.next[holding]!;
    if (previous === NO_HOLDING) this.#segments.firstHolding[this.segment[holding]!] = next;
    else this.next[previous] = next;
    if (next !== NO_HOLDING) this.#previous[next] = previous;
  }

  /** Puts the holding right after `older` in its slot's list, NO_HOLDING being an empty list. */
  #link(holding: number, older: number): void {
    const slot = this.slot[holding]!;
    const newer = older === NO_HOLDING ? NO_HOLDING : this.#newer[older]!;
    this.#older[holding] = older;
    this.#newer[holding] = newer;
    if (older === NO_HOLDING) this.#oldest[slot] = holding;
    else this.#newer[older] = holding;
    if (newer === NO_HOLDING) this.#newest[slot] = holding;
    else this.#older[newer] = holding;
  }

  #unlink(holding: number): void {
    const slot = this.slot[holding]!;
    const older = this.#older[holding]!;
    const newer = this.#newer[holding]!;
    if (older === NO_HOLDING) this.#oldest[slot] = newer;
    else this.#newer[older] = newer;
    if (newer === NO_HOLDING) this.#newest[slot] = older;
    else this.#older[newer] = older;
  }

  #grow(): void {
    this.segment = doubled(this.segment);
    this.slot = doubled(this.slot);
    this.blocks = doubled(this.blocks);
    this.parent = doubled(this.parent);
    this.next = doubled(this.next);
    this.#previous = doubled(this.#previous);
    this.#older = doubled(this.#older);
    this.#newer = doubled(this.#newer);
    const stamp = new Float64Array(2 * this.stamp.length);
    stamp.set(this.stamp);
    this.stamp = stamp;
  }
}
