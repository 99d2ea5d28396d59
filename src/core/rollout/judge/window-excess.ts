import { priorFor, reach } from "./confidence-sequence.ts";

/** Windows at which it is to be quickest. */
const COUNT_PLANNED = 10;

export interface SavedExcess {
  readonly count: number;
  readonly sum: number;
  readonly squares: number;
}

/**
 * By how much an arm's figure is above its limit, window by window, and what that is at least, at every look together. Where
 * arms have endpoints of their own the window is what was drawn: one in which a pool has the longer prompts shows little.
 */
export class WindowExcess {
  #count: number;
  #sum: number;
  #squares: number;

  constructor(saved: SavedExcess = { count: 0, sum: 0, squares: 0 }) {
    ({ count: this.#count, sum: this.#sum, squares: this.#squares } = saved);
  }

  add(excess: number): void {
    this.#count++;
    this.#sum += excess;
    this.#squares += excess * excess;
  }

  /** NaN where too little is known. */
  atLeast(level: number): number {
    const count = this.#count;
    if (count < 2) return NaN;
    const mean = this.#sum / count;
    const deviation = Math.sqrt(Math.max(0, this.#squares - count * mean * mean) / (count - 1));
    const half = reach({ count, mean, deviation, degrees: count - 1 }, level, priorFor(COUNT_PLANNED, level));
    return Number.isFinite(half) ? mean - half : NaN;
  }

  saved(): SavedExcess {
    return { count: this.#count, sum: this.#sum, squares: this.#squares };
  }
}
