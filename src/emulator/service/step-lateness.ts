import { createHistogram } from "node:perf_hooks";
import { MICROS_PER_MILLI } from "#core/base/units.ts";

/** How late steps came to an end on the wall clock, in milliseconds; zeros before the first. */
export interface HostLag {
  readonly steps: number;
  readonly mean: number;
  readonly p99: number;
  readonly max: number;
}

/**
 * A process that gets no CPU, or spends too long on other requests, ends steps late. The engine's own clock does not
 * notice; the client does.
 */
export class StepLateness {
  /** Microseconds of the wall clock, at least 1 as the histogram wants it. */
  readonly #histogram = createHistogram();

  add(micros: number): void {
    this.#histogram.record(Math.max(1, Math.round(micros)));
  }

  lag(): HostLag {
    const { count, mean, max } = this.#histogram;
    if (count === 0) return { steps: 0, mean: 0, p99: 0, max: 0 };
    const millis = (micros: number): number => micros / MICROS_PER_MILLI;
    return { steps: count, mean: millis(mean), p99: millis(this.#histogram.percentile(99)), max: millis(max) };
  }
}
