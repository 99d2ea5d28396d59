import type { Micros } from "#core/units.ts";

interface Entry<T> {
  readonly due: Micros;
  readonly order: number;
  readonly item: T;
}

/** What is to be done when: the earliest first, equal times in the order of `push`. A binary heap. */
export class DueQueue<T> {
  readonly #heap: Entry<T>[] = [];
  #order = 0;

  get size(): number {
    return this.#heap.length;
  }

  get nextDue(): Micros | undefined {
    return this.#heap[0]?.due;
  }

  push(due: Micros, item: T): void {
    const entry = { due, order: this.#order++, item };
    const heap = this.#heap;
    let at = heap.length;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || before(parent, entry)) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = entry;
  }

  pop(): T | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || first === last) return first?.item;
    let at = 0;
    for (;;) {
      const left = heap[2 * at + 1];
      const right = heap[2 * at + 2];
      const least = right !== undefined && left !== undefined && before(right, left) ? right : left;
      if (least === undefined || before(last, least)) break;
      heap[at] = least;
      at = least === right ? 2 * at + 2 : 2 * at + 1;
    }
    heap[at] = last;
    return first.item;
  }
}

function before<T>(a: Entry<T>, b: Entry<T>): boolean {
  return a.due < b.due || (a.due === b.due && a.order < b.order);
}
