import type { Micros } from "../base/units.ts";

/** Gaps that the rate is the mean of. */
const GAPS = 32;
/** Fewer say nothing. */
const GAPS_MIN = 8;

/**
 * How fast requests that wait go on, by the gaps between the latest of them during which others waited: what the endpoints
 * take when they are full, not what comes when they are not.
 */
export class DrainRate {
  readonly #gaps = new Float64Array(GAPS);
  #count = 0;
  #sum = 0;
  /** When one went on and left others behind; undefined where it left none. */
  #since: Micros | undefined;

  /** One went on; `left` others wait. */
  went(at: Micros, left: number): void {
    if (this.#since !== undefined) {
      const slot = this.#count++ % GAPS;
      const gap = Math.max(0, at - this.#since);
      this.#sum += gap - this.#gaps[slot]!;
      this.#gaps[slot] = gap;
    }
    this.#since = left > 0 ? at : undefined;
  }

  /** Nobody waits any more, by whichever way. */
  emptied(): void {
    this.#since = undefined;
  }

  /** Mean microseconds from one to the next; undefined where it is not known. One that does not come makes it longer. */
  gapMicros(at: Micros): Micros | undefined {
    const known = Math.min(this.#count, GAPS);
    if (known < GAPS_MIN) return undefined;
    const mean = this.#sum / known;
    const open = this.#since === undefined ? 0 : at - this.#since;
    return open > mean ? (this.#sum + open) / (known + 1) : mean;
  }
}
