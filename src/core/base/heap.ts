import { assert } from "./assert.ts";

/**
 * A binary heap: the first by `precedes`, which must be a strict total order, so that one order of items has one outcome
 * on every machine. push and shift cost O(log n), remove O(n).
 */
export class Heap<T> {
  readonly #items: T[] = [];
  readonly #precedes: (a: T, b: T) => boolean;

  constructor(precedes: (a: T, b: T) => boolean) {
    this.#precedes = precedes;
  }

  get size(): number {
    return this.#items.length;
  }

  /** The first, or undefined where there is none. */
  get first(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    this.#items.push(item);
    this.#rise(this.#items.length - 1, item);
  }

  /** Takes out the first; there must be one. */
  shift(): T {
    const items = this.#items;
    assert(items.length > 0, "a heap gives only what it has");
    const first = items[0]!;
    const last = items.pop()!;
    if (items.length > 0) this.#sink(0, last);
    return first;
  }

  /** Takes out an item that must be there. */
  remove(item: T): void {
    const items = this.#items;
    const hole = items.indexOf(item);
    assert(hole >= 0, "a heap gives only what it has");
    const last = items.pop()!;
    if (hole === items.length) return;
    if (hole > 0 && this.#precedes(last, items[(hole - 1) >> 1]!)) this.#rise(hole, last);
    else this.#sink(hole, last);
  }

  #rise(from: number, item: T): void {
    const items = this.#items;
    let at = from;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = items[above]!;
      if (!this.#precedes(item, parent)) break;
      items[at] = parent;
      at = above;
    }
    items[at] = item;
  }

  #sink(from: number, item: T): void {
    const items = this.#items;
    const { length } = items;
    let at = from;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= length) break;
      if (child + 1 < length && this.#precedes(items[child + 1]!, items[child]!)) child++;
      if (!this.#precedes(items[child]!, item)) break;
      items[at] = items[child]!;
      at = child;
    }
    items[at] = item;
  }
}
