import { NO_RANK, type MergeTable } from "./merge-table.ts";

const NONE = -1;
/** Heap keys are rank * 2^32 + place: the earliest rank first, the leftmost of one rank. Exact in a double. */
const RANK_UNIT = 2 ** 32;

/**
 * Byte-pair merging of one long piece in O(n log n), in slices, so that a piece made to be slow does not hold up others.
 * Merges in the library's order: always the lowest rank, the leftmost of equals.
 */
export class LongMerge {
  readonly #merges: MergeTable;
  readonly #ids: Int32Array;
  readonly #next: Int32Array;
  readonly #previous: Int32Array;
  readonly #heap: Float64Array;
  #heapSize = 0;
  /** Pairs of the piece as it came that are in the heap. */
  #offered = 0;

  /** `ids` are the tokens of the piece's bytes; the merge keeps the array. */
  constructor(merges: MergeTable, ids: Int32Array) {
    const { length } = ids;
    this.#merges = merges;
    this.#ids = ids;
    this.#next = new Int32Array(length);
    this.#previous = new Int32Array(length);
    for (let at = 0; at < length; at++) {
      this.#next[at] = at + 1 < length ? at + 1 : NONE;
      this.#previous[at] = at - 1;
    }
    // Each merge removes a symbol and offers at most two pairs.
    this.#heap = new Float64Array(3 * length);
  }

  get done(): boolean {
    return this.#offered === this.#ids.length && this.#heapSize === 0;
  }

  /** Works through at most `steps` pairs; returns how many it was. */
  advance(steps: number): number {
    let step = 0;
    for (; step < steps && this.#offered < this.#ids.length; step++) this.#offer(this.#offered++);
    for (; step < steps && this.#heapSize > 0; step++) this.#mergeNext();
    return step;
  }

  /** The tokens, once done. */
  tokens(): Int32Array {
    return this.#ids.filter((id) => id !== NONE);
  }

  #mergeNext(): void {
    const key = this.#pop();
    const rank = Math.floor(key / RANK_UNIT);
    const at = key % RANK_UNIT;
    const right = this.#next[at]!;
    // Merges since may have taken either side of the pair.
    if (this.#ids[at] === NONE || right === NONE) return;
    if (this.#merges.rank(this.#ids[at]!, this.#ids[right]!) !== rank) return;
    const after = this.#next[right]!;
    this.#ids[at] = this.#merges.made(rank);
    this.#ids[right] = NONE;
    this.#next[at] = after;
    if (after !== NONE) this.#previous[after] = at;
    const before = this.#previous[at]!;
    if (before !== NONE) this.#offer(before);
    this.#offer(at);
  }

  #offer(at: number): void {
    const right = this.#next[at]!;
    if (right === NONE) return;
    const rank = this.#merges.rank(this.#ids[at]!, this.#ids[right]!);
    if (rank !== NO_RANK) this.#push(rank * RANK_UNIT + at);
  }

  #push(key: number): void {
    const heap = this.#heap;
    let at = this.#heapSize++;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (heap[parent]! <= key) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = key;
  }

  #pop(): number {
    const heap = this.#heap;
    const top = heap[0]!;
    const size = --this.#heapSize;
    const key = heap[size]!;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= size) break;
      if (child + 1 < size && heap[child + 1]! < heap[child]!) child++;
      if (heap[child]! >= key) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = key;
    return top;
  }
}
