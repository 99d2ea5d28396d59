import type { Micros } from "../base/units.ts";

/**
 * Mean of samples in which an old one counts less with time.
 *
 *     w = dt / (dt + tau),  mean += w * (sample - mean)
 *
 * The weight is the rational stand-in for 1 - exp(-dt / tau): same shape, and the same last bit on every machine. Samples
 * of one instant are worth `SAME_INSTANT_WEIGHT` each.
 */
export class Ewma {
  readonly #tauMicros: number;
  #mean: number | undefined;
  #updatedAt: Micros = 0;

  constructor(tauMicros: number) {
    this.#tauMicros = tauMicros;
  }

  /** undefined before the first sample. */
  get value(): number | undefined {
    return this.#mean;
  }

  add(at: Micros, sample: number): void {
    if (this.#mean === undefined) {
      this.#mean = sample;
    } else {
      const elapsed = at - this.#updatedAt;
      const weight = Math.max(elapsed / (elapsed + this.#tauMicros), SAME_INSTANT_WEIGHT);
      this.#mean += weight * (sample - this.#mean);
    }
    this.#updatedAt = at;
  }
}

const SAME_INSTANT_WEIGHT = 0.05;
