import { MICROS_PER_SECOND, type Micros } from "../base/units.ts";

/** Share that is left of what was known before a sample: about so many of the latest count. */
const KEEP = 0.95;
const TAU_MICROS = 30 * MICROS_PER_SECOND;

/**
 * How much longer something takes than predicted: the sum of what was measured over the sum of what was predicted, the
 * latest counting most, so that a short time that was disturbed weighs no more than it took. It begins at 1, as if
 * `priorMicros` had been predicted and measured.
 *
 *     keep = min(0.95, tau / (tau + time since the last sample))
 */
export class Speed {
  /** Read for each endpoint in every decision, and written once an answer. */
  value = 1;
  #measuredMicros: number;
  #predictedMicros: number;
  #at: Micros | undefined;

  constructor(priorMicros: number) {
    this.#measuredMicros = priorMicros;
    this.#predictedMicros = priorMicros;
  }

  add(at: Micros, measuredMicros: number, predictedMicros: number): void {
    const elapsed = Math.max(0, at - (this.#at ?? at));
    const keep = Math.min(KEEP, TAU_MICROS / (TAU_MICROS + elapsed));
    this.#measuredMicros = keep * this.#measuredMicros + measuredMicros;
    this.#predictedMicros = keep * this.#predictedMicros + predictedMicros;
    this.value = this.#measuredMicros / this.#predictedMicros;
    this.#at = at;
  }
}
