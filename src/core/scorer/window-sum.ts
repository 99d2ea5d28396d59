import type { Micros } from "../units.ts";

/** Samples kept; beyond that the oldest goes, so that a fast source shortens the window instead of growing it. */
const SAMPLES_MAX = 16_384;

/**
 * Sum and number of the samples of the last `windowMicros`. Samples are integers, so that the sum is exact however often
 * it was asked for. Time does not go back.
 */
export class WindowSum {
  readonly #windowMicros: Micros;
  readonly #at: Micros[] = [];
  readonly #samples: number[] = [];
  #first = 0;
  #sum = 0;

  constructor(windowMicros: Micros) {
    this.#windowMicros = windowMicros;
  }

  sum(at: Micros): number {
    this.#forget(at);
    return this.#sum;
  }

  count(at: Micros): number {
    this.#forget(at);
    return this.#at.length - this.#first;
  }

  add(at: Micros, sample: number): void {
    this.#at.push(at);
    this.#samples.push(sample);
    this.#sum += sample;
    this.#forget(at);
    if (this.#at.length - this.#first > SAMPLES_MAX) this.#drop();
    if (this.#first < SAMPLES_MAX) return;
    this.#at.splice(0, this.#first);
    this.#samples.splice(0, this.#first);
    this.#first = 0;
  }

  #forget(at: Micros): void {
    while (this.#first < this.#at.length && at - this.#at[this.#first]! > this.#windowMicros) this.#drop();
  }

  #drop(): void {
    this.#sum -= this.#samples[this.#first]!;
    this.#first++;
  }
}
