import { assert } from "#core/assert.ts";
import type { StepTime } from "./step-time.ts";

/** Durations of the steps of a recorded run, in order: the record drives the clock and the scheduler stands alone. */
export interface MeasuredSpec {
  readonly kind: "measured";
  readonly stepMicros: readonly number[];
}

export class MeasuredStepTime implements StepTime {
  readonly stateless = false;
  readonly #stepMicros: readonly number[];
  #next = 0;

  constructor(spec: MeasuredSpec) {
    assert(spec.stepMicros.length > 0, "a measured step time has at least one step");
    this.#stepMicros = spec.stepMicros;
  }

  /** The next duration; after the end of the record its last one again. */
  micros(): number {
    const last = this.#stepMicros.length - 1;
    const micros = this.#stepMicros[this.#next < last ? this.#next : last];
    this.#next++;
    assert(micros !== undefined, "a measured step exists");
    return micros;
  }
}
