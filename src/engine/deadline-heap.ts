import { assert } from "#core/base/assert.ts";
import { Heap } from "#core/base/heap.ts";
import type { Micros } from "#core/base/units.ts";
import type { Sequence } from "./sequence.ts";

interface Entry {
  readonly at: Micros;
  readonly order: number;
  readonly sequence: Sequence;
}

/** Requests by deadline, then by submission. One that has left stays in it until its deadline and is then skipped. */
export class DeadlineHeap {
  readonly #heap = new Heap<Entry>((a, b) => (a.at === b.at ? a.order < b.order : a.at < b.at));

  push(at: Micros, sequence: Sequence): void {
    this.#heap.push({ at, order: sequence.order, sequence });
  }

  /** The earliest deadline of a request that is still in the engine. */
  nextAt(): Micros | undefined {
    for (;;) {
      const { first } = this.#heap;
      if (first === undefined) return undefined;
      if (alive(first)) return first.at;
      this.#heap.shift();
    }
  }

  /** Takes the request with the earliest deadline, which must be there. */
  take(): Sequence {
    const first = this.#heap.shift();
    assert(alive(first), "a deadline's request is in the engine");
    return first.sequence;
  }
}

/** Sequences are pooled: the submission number shows whether this is still the request that was entered. */
function alive({ order, sequence }: Entry): boolean {
  const over = sequence.state === "ended" || sequence.state === "held" || sequence.leaving;
  return sequence.order === order && !over;
}
