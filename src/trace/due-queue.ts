import { Heap } from "#core/base/heap.ts";
import type { Micros } from "#core/base/units.ts";

interface Entry<T> {
  readonly due: Micros;
  readonly order: number;
  readonly item: T;
}

/** What is to be done when: the earliest first, equal times in the order of `push`. */
export class DueQueue<T> {
  readonly #heap = new Heap<Entry<T>>((a, b) => a.due < b.due || (a.due === b.due && a.order < b.order));
  #order = 0;

  get size(): number {
    return this.#heap.size;
  }

  get nextDue(): Micros | undefined {
    return this.#heap.first?.due;
  }

  push(due: Micros, item: T): void {
    this.#heap.push({ due, order: this.#order++, item });
  }

  pop(): T | undefined {
    return this.#heap.size === 0 ? undefined : this.#heap.shift().item;
  }
}
