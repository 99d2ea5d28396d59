import { assert } from "#core/assert.ts";
import type { Micros } from "#core/units.ts";

/** Order of events at one instant, as BLIS has it; engines' own steps and completions come after all of these. */
export type EventPriority = 1 | 2 | 3 | 4 | 5 | 6;

/** What waits for its time: ordered by time, then priority, then order of being pushed. */
export class EventQueue<T> {
  #at = new Float64Array(64);
  #rank = new Float64Array(64);
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
    const rank = priority * PUSHES_MAX + this.#pushed++;
    let hole = this.#size++;
    while (hole > 0) {
      const parent = (hole - 1) >> 1;
      if (!this.#before(at, rank, parent)) break;
      this.#move(parent, hole);
      hole = parent;
    }
    this.#put(hole, at, rank, item);
  }

  pop(): T {
    assert(this.#size > 0, "an event is popped from a queue that has one");
    const first = this.#items[0]!;
    const last = --this.#size;
    const at = this.#at[last]!;
    const rank = this.#rank[last]!;
    const item = this.#items[last]!;
    this.#items[last] = undefined;
    if (last === 0) return first;
    let hole = 0;
    for (let child = 1; child < last; child = 2 * hole + 1) {
      if (child + 1 < last && this.#before(this.#at[child + 1]!, this.#rank[child + 1]!, child)) child++;
      if (this.#before(at, rank, child)) break;
      this.#move(child, hole);
      hole = child;
    }
    this.#put(hole, at, rank, item);
    return first;
  }

  #before(at: Micros, rank: number, other: number): boolean {
    return at < this.#at[other]! || (at === this.#at[other]! && rank < this.#rank[other]!);
  }

  #move(from: number, to: number): void {
    this.#at[to] = this.#at[from]!;
    this.#rank[to] = this.#rank[from]!;
    this.#items[to] = this.#items[from];
  }

  #put(index: number, at: Micros, rank: number, item: T): void {
    this.#at[index] = at;
    this.#rank[index] = rank;
    this.#items[index] = item;
  }

  #grow(): void {
    for (const column of ["at", "rank"] as const) {
      const old = column === "at" ? this.#at : this.#rank;
      const wide = new Float64Array(2 * old.length);
      wide.set(old);
      if (column === "at") this.#at = wide;
      else this.#rank = wide;
    }
  }
}

/** 2^50 pushes: priority and order then fit one double exactly. */
const PUSHES_MAX = 0x4_0000_0000_0000;
