import type { Micros } from "../units.ts";

/** Readings kept; beyond that the oldest goes, so that a fast scrape shortens the window instead of growing it. */
const READINGS_MAX = 4096;

/** Mean of the readings of the last `windowMicros`. Reading it changes nothing. */
export class RollingMean {
  readonly #windowMicros: Micros;
  readonly #at: Micros[] = [];
  readonly #readings: number[] = [];

  constructor(windowMicros: Micros) {
    this.#windowMicros = windowMicros;
  }

  /** undefined when the window is empty. */
  value(at: Micros): number | undefined {
    let sum = 0;
    let count = 0;
    for (let i = this.#at.length - 1; i >= 0 && at - this.#at[i]! <= this.#windowMicros; i--) {
      sum += this.#readings[i]!;
      count++;
    }
    return count === 0 ? undefined : sum / count;
  }

  add(at: Micros, reading: number): void {
    this.#at.push(at);
    this.#readings.push(reading);
    while (at - this.#at[0]! > this.#windowMicros || this.#at.length > READINGS_MAX) {
      this.#at.shift();
      this.#readings.shift();
    }
  }
}
