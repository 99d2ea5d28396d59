import { assert } from "#core/assert.ts";
import { Heap } from "#core/heap.ts";
import type { Micros } from "#core/units.ts";

/** Order of events at one instant, as BLIS has it; engines' own steps and completions come after all of these. */
export type EventPriority = 1 | 2 | 3 | 4 | 5 | 6;

interface Entry<T> {
  readonly at: Micros;
  /** Priority and order of being pushed, as one number. */
  readonly rank: number;
  readonly item: T;
}

/** What waits for its time: ordered by time, then priority, then order of being pushed. */
export class EventQueue<T> {
  readonly #heap = new Heap<Entry<T>>((a, b) => a.at < b.at || (a.at === b.at && a.rank < b.rank));
  #pushed = 0;

  get size(): number {
    return this.#heap.size;
  }

  /** Time of the first event; Infinity when there is none. */
  get nextAt(): Micros {
    return this.#heap.first?.at ?? Infinity;
  }

  push(at: Micros, priority: EventPriority, item: T): void {
    assert(this.#pushed < PUSHES_MAX, "an event's order fits beside its priority");
    this.#heap.push({ at, rank: priority * PUSHES_MAX + this.#pushed++, item });
  }

  pop(): T {
    return this.#heap.shift().item;
  }
}

/** 2^50 pushes: priority and order then fit one double exactly. */
const PUSHES_MAX = 0x4_0000_0000_0000;
