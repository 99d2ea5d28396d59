import { assert } from "#core/base/assert.ts";
import type { Micros } from "#core/base/units.ts";

/** Order of events at one instant, as BLIS has it; engines' own steps and completions come after all of these. */
export type EventPriority = 1 | 2 | 3 | 4 | 5 | 6;

/**
 * What waits for its time: ordered by time, then priority, then order of being pushed. A binary heap in columns: several
 * events a request go through it, and neither an entry nor a call to compare two is made for one.
 */
export class EventQueue<T> {
  #at = new Float64Array(EVENTS_MIN);
  /** Priority and order of being pushed, as one number. */
  #rank = new Float64Array(EVENTS_MIN);
  readonly #items: (T | undefined)[] = [];
  #size = 0;
  #pushed = 0;

  get size(): number {
    return this.#size;
  }

  /** Time of the first event; Infinity when there is none. */
  get nextAt(): Micros {
    return this.#size === 0 ? Infinity : this.#at[0]!;
  }

  push(at: Micros, priority: EventPriority, item: T): void {
    assert(this.#pushed < PUSHES_MAX, "an event's order fits beside its priority");
    if (this.#size === this.#at.length) this.#grow();
    this.#rise(this.#size++, at, priority * PUSHES_MAX + this.#pushed++, item);
  }

  pop(): T {
    assert(this.#size > 0, "a queue gives only what it has");
    const first = this.#items[0]!;
    const last = --this.#size;
    const item = this.#items[last]!;
    this.#items[last] = undefined;
    if (last > 0) this.#sink(this.#at[last]!, this.#rank[last]!, item);
    return first;
  }

  #rise(from: number, at: Micros, rank: number, item: T): void {
    const ats = this.#at;
    const ranks = this.#rank;
    const items = this.#items;
    let hole = from;
    while (hole > 0) {
      const above = (hole - 1) >> 1;
      const aboveAt = ats[above]!;
      if (aboveAt < at || (aboveAt === at && ranks[above]! < rank)) break;
      ats[hole] = aboveAt;
      ranks[hole] = ranks[above]!;
      items[hole] = items[above];
      hole = above;
    }
    ats[hole] = at;
    ranks[hole] = rank;
    items[hole] = item;
  }

  /** Puts it in at the top, which is free. */
  #sink(at: Micros, rank: number, item: T): void {
    const ats = this.#at;
    const ranks = this.#rank;
    const items = this.#items;
    let hole = 0;
    for (;;) {
      let child = 2 * hole + 1;
      if (child >= this.#size) break;
      const other = child + 1;
      if (other < this.#size) {
        const otherAt = ats[other]!;
        if (otherAt < ats[child]! || (otherAt === ats[child]! && ranks[other]! < ranks[child]!)) child = other;
      }
      const childAt = ats[child]!;
      if (at < childAt || (at === childAt && rank < ranks[child]!)) break;
      ats[hole] = childAt;
      ranks[hole] = ranks[child]!;
      items[hole] = items[child];
      hole = child;
    }
    ats[hole] = at;
    ranks[hole] = rank;
    items[hole] = item;
  }

  #grow(): void {
    const at = new Float64Array(2 * this.#size);
    at.set(this.#at);
    const rank = new Float64Array(2 * this.#size);
    rank.set(this.#rank);
    this.#at = at;
    this.#rank = rank;
  }
}

const EVENTS_MIN = 64;
/** 2^50 pushes: priority and order then fit one double exactly. */
const PUSHES_MAX = 0x4_0000_0000_0000;
