import { assert } from "#core/base/assert.ts";
import type { Sequence } from "./sequence.ts";

/** Places before the first that are worth closing up, when they are also half of all. */
const GAP_MIN = 1024;

/** Submitted requests that the scheduler does not see yet, by the time when it will, then by submission. */
export class ArrivalQueue {
  /** Sorted from #first to #end; what lies outside is of no meaning. */
  readonly #places: Sequence[] = [];
  #first = 0;
  #end = 0;

  get size(): number {
    return this.#end - this.#first;
  }

  /** Nearly always the latest, so it is placed from the back. */
  push(sequence: Sequence): void {
    let i = this.#end++;
    for (; i > this.#first; i--) {
      const before = this.#at(i - 1);
      if (before.visibleAt <= sequence.visibleAt) break;
      this.#places[i] = before;
    }
    this.#places[i] = sequence;
  }

  peek(): Sequence | undefined {
    return this.#first < this.#end ? this.#places[this.#first] : undefined;
  }

  shift(): Sequence {
    const sequence = this.#at(this.#first++);
    if (this.#first === this.#end) {
      this.#first = 0;
      this.#end = 0;
    } else if (this.#first >= GAP_MIN && this.#first * 2 >= this.#end) this.#closeUp(0, this.#first);
    return sequence;
  }

  remove(sequence: Sequence): void {
    const index = this.#places.indexOf(sequence, this.#first);
    assert(index >= 0 && index < this.#end, "a removed request arrives");
    this.#closeUp(index, 1);
  }

  /** Moves what follows the \`count\` places from \`index\` on into them. */
  #closeUp(index: number, count: number): void {
    this.#places.copyWithin(index, index + count, this.#end);
    this.#end -= count;
    if (index < this.#first) this.#first -= count;
  }

  #at(index: number): Sequence {
    const sequence = this.#places[index];
    assert(sequence !== undefined, "a request arrives");
    return sequence;
  }
}
