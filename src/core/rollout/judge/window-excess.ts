import { priorFor, reach } from "./confidence-sequence.ts";

/** Windows at which it is to be quickest: four are the least that show anything at the levels that limits have. */
const COUNT_PLANNED = 2;
/** A window in which the figure is further from its limit than by this factor's logarithm counts as one by that much. */
const EXCESS_MAX = 1;

export interface SavedExcess {
  readonly count: number;
  readonly sum: number;
  readonly squares: number;
}

/**
 * By how much an arm's figure is above its limit, window by window, and what that is at least, at every look together.
 * Where arms have endpoints of their own the window is what was drawn: one in which a pool has the longer prompts shows
 * little. It is the natural logarithm of figure over limit, at most 1 either way: the queue of an overloaded pool grows
 * from window to window, and on a scale of its own that growth would look like chance.
 */
export class WindowExcess {
  #count: number;
  #sum: number;
  #squares: number;

  constructor(saved: SavedExcess = { count: 0, sum: 0, squares: 0 }) {
    ({ count: this.#count, sum: this.#sum, squares: this.#squares } = saved);
  }

  /** One in which the figure was `ratio` times its limit, at least 0. */
  add(ratio: number): void {
    const excess = Math.min(EXCESS_MAX, Math.max(-EXCESS_MAX, Math.log(ratio)));
    this.#count++;
    this.#sum += excess;
    this.#squares += excess * excess;
  }

  /** How many times its limit the figure is at least; NaN where too little is known. */
  atLeast(level: number): number {
    const count = this.#count;
    if (count < 2) return NaN;
    const mean = this.#sum / count;
    const deviation = Math.sqrt(Math.max(0, this.#squares - count * mean * mean) / (count - 1));
    const half = reach({ count, mean, deviation, degrees: count - 1 }, level, priorFor(COUNT_PLANNED, level));
    return Number.isFinite(half) ? Math.exp(mean - half) : NaN;
  }

  saved(): SavedExcess {
    return { count: this.#count, sum: this.#sum, squares: this.#squares };
  }
}
