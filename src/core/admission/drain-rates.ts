import type { Micros } from "../base/units.ts";
import { DrainRate } from "./drain-rate.ts";

/** Models whose rate is remembered. */
const MODELS_MAX = 1_024;

/** By model, how fast requests that wait go on. */
export class DrainRates {
  readonly #rates = new Map<string, DrainRate>();

  /** One for the model went on, or left by another way; `left` others wait. */
  removed(at: Micros, model: string, goesOn: boolean, left: number): void {
    if (goesOn) this.#of(model).went(at, left);
    else if (left === 0) this.#rates.get(model)?.emptied();
  }

  /** Mean microseconds from one to the next; undefined where it is not known. */
  gapMicros(at: Micros, model: string): Micros | undefined {
    return this.#rates.get(model)?.gapMicros(at);
  }

  #of(model: string): DrainRate {
    let rate = this.#rates.get(model);
    if (rate === undefined) {
      if (this.#rates.size >= MODELS_MAX) this.#rates.clear();
      rate = new DrainRate();
      this.#rates.set(model, rate);
    }
    return rate;
  }
}
