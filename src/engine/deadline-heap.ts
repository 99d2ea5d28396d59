import { assert } from "#core/assert.ts";
import type { Micros } from "#core/units.ts";
import type { Sequence } from "./sequence.ts";

interface Entry {
  readonly at: Micros;
  readonly order: number;
  readonly sequence: Sequence;
}

/** Requests by deadline, then by submission. One that has left stays in it until its deadline and is then skipped. */
export class DeadlineHeap {
  readonly #heap: Entry[] = [];

  push(at: Micros, sequence: Sequence): void {
    const entry: Entry = { at, order: sequence.order, sequence };
    let i = this.#heap.length;
    this.#heap.push(entry);
    while (i > 0) {
      const parent = this.#at((i - 1) >> 1);
      if (!precedes(entry, parent)) break;
      this.#heap[i] = parent;
      i = (i - 1) >> 1;
    }
    this.#heap[i] = entry;
  }

  /** The earliest deadline of a request that is still in the engine. */
  nextAt(): Micros | undefined {
    for (;;) {
      const first = this.#heap[0];
      if (first === undefined) return undefined;
      if (alive(first)) return first.at;
      this.#removeFirst();
    }
  }

  /** Takes the request with the earliest deadline, which must be there. */
  take(): Sequence {
    const first = this.#at(0);
    assert(alive(first), "a deadline's request is in the engine");
    this.#removeFirst();
    return first.sequence;
  }

  #removeFirst(): void {
    const last = this.#heap.pop();
    if (last === undefined || this.#heap.length === 0) return;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= this.#heap.length) break;
      if (child + 1 < this.#heap.length && precedes(this.#at(child + 1), this.#at(child))) child++;
      if (!precedes(this.#at(child), last)) break;
      this.#heap[i] = this.#at(child);
      i = child;
    }
    this.#heap[i] = last;
  }

  #at(index: number): Entry {
    const entry = this.#heap[index];
    assert(entry !== undefined, "the heap has this entry");
    return entry;
  }
}

/** Sequences are pooled: the submission number tells whether this is still the request that was entered. */
function alive(entry: Entry): boolean {
  return entry.sequence.order === entry.order && entry.sequence.state !== "ended" && !entry.sequence.leaving;
}

function precedes(a: Entry, b: Entry): boolean {
  return a.at === b.at ? a.order < b.order : a.at < b.at;
}
