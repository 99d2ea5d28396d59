import { assert } from "#core/assert.ts";
import type { Sequence } from "./sequence.ts";

/** Submitted requests that the scheduler does not see yet, by the time when it will, then by submission. */
export class ArrivalQueue {
  #sorted: Sequence[] = [];
  #first = 0;

  get size(): number {
    return this.#sorted.length - this.#first;
  }

  /** Nearly always the latest, so it is placed from the back. */
  push(sequence: Sequence): void {
    let i = this.#sorted.length;
    this.#sorted.push(sequence);
    for (; i > this.#first; i--) {
      const before = this.#at(i - 1);
      if (before.visibleAt <= sequence.visibleAt) break;
      this.#sorted[i] = before;
    }
    this.#sorted[i] = sequence;
  }

  peek(): Sequence | undefined {
    return this.#sorted[this.#first];
  }

  shift(): Sequence {
    const sequence = this.#at(this.#first++);
    if (this.#first === this.#sorted.length) {
      this.#sorted.length = 0;
      this.#first = 0;
    } else if (this.#first > 1024 && this.#first * 2 > this.#sorted.length) {
      this.#sorted = this.#sorted.slice(this.#first);
      this.#first = 0;
    }
    return sequence;
  }

  remove(sequence: Sequence): void {
    const index = this.#sorted.indexOf(sequence, this.#first);
    assert(index >= 0, "a removed request arrives");
    this.#sorted.splice(index, 1);
  }

  #at(index: number): Sequence {
    const sequence = this.#sorted[index];
    assert(sequence !== undefined, "a request arrives");
    return sequence;
  }
}
