import { Heap } from "../base/heap.ts";

/** Entries of a heap that are gone already, beyond which it is made anew. */
const STALE_MIN = 64;

/** Least and most of amounts above 0 that come and go, each in a time that hardly grows with how many there are. */
export class TokenTotals {
  /** How many there are of each amount. */
  readonly #counts = new Map<number, number>();
  #least = new Heap<number>((a, b) => a < b);
  #most = new Heap<number>((a, b) => a > b);

  /** One amount is another now; 0 and less is none. */
  move(before: number, after: number): void {
    if (before === after) return;
    if (before > 0) this.#leave(before);
    if (after > 0) this.#come(after);
  }

  /** Undefined where there is none. */
  get span(): { readonly min: number; readonly max: number } | undefined {
    const min = this.#first(this.#least);
    const max = this.#first(this.#most);
    return min === undefined || max === undefined ? undefined : { min, max };
  }

  #come(amount: number): void {
    const count = this.#counts.get(amount) ?? 0;
    this.#counts.set(amount, count + 1);
    if (count > 0) return;
    this.#least.push(amount);
    this.#most.push(amount);
    const most = 2 * this.#counts.size + STALE_MIN;
    if (this.#least.size > most) this.#least = this.#refilled(new Heap<number>((a, b) => a < b));
    if (this.#most.size > most) this.#most = this.#refilled(new Heap<number>((a, b) => a > b));
  }

  #leave(amount: number): void {
    const count = this.#counts.get(amount)!;
    if (count === 1) this.#counts.delete(amount);
    else this.#counts.set(amount, count - 1);
  }

  #first(heap: Heap<number>): number | undefined {
    while (heap.first !== undefined && !this.#counts.has(heap.first)) heap.shift();
    return heap.first;
  }

  #refilled(heap: Heap<number>): Heap<number> {
    for (const amount of this.#counts.keys()) heap.push(amount);
    return heap;
  }
}
