import { monitorEventLoopDelay } from "node:perf_hooks";

/**
 * Each look wakes the loop, which costs an idle processor some 20 us: at Node's default of 10 ms that is 2 ms of each
 * second, a hundredth of what 300 requests take.
 */
const RESOLUTION_MILLIS = 100;
const NANOS_PER_SECOND = 1e9;
const RESOLUTION_SECONDS = RESOLUTION_MILLIS / 1e3;

/** How late the event loop comes to what is due, in seconds: looked at ten times a second, since the last reset. */
export class LoopDelay {
  readonly #intervals = monitorEventLoopDelay({ resolution: RESOLUTION_MILLIS });

  enable(): void {
    this.#intervals.enable();
  }

  disable(): void {
    this.#intervals.disable();
  }

  reset(): void {
    this.#intervals.reset();
  }

  /** 0 before the first look. */
  get min(): number {
    return this.#late(this.#intervals.min);
  }

  get max(): number {
    return this.#late(this.#intervals.max);
  }

  get mean(): number {
    return this.#late(this.#intervals.mean);
  }

  get stddev(): number {
    return this.#intervals.count === 0 ? 0 : this.#intervals.stddev / NANOS_PER_SECOND;
  }

  percentile(percent: number): number {
    return this.#late(this.#intervals.percentile(percent));
  }

  /** Node counts from look to look. */
  #late(intervalNanos: number): number {
    if (this.#intervals.count === 0) return 0;
    return Math.max(0, intervalNanos / NANOS_PER_SECOND - RESOLUTION_SECONDS);
  }
}
