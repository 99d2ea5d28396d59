import { assert } from "#core/base/assert.ts";
import type { Micros } from "#core/base/units.ts";
import type { StepTime } from "./step-time.ts";

/** The steps of a recorded run, in order: the record drives the clock and the scheduler stands alone. */
export interface MeasuredSpec {
  readonly kind: "measured";
  readonly stepMicros: readonly number[];
  /** No step starts before its recorded start; the step gap then has no effect. Left out: steps follow each other. */
  readonly startAt?: readonly Micros[];
}

/** Step times as they were recorded, one after another, whatever the batch. */
export class MeasuredStepTime implements StepTime {
  readonly stateless = false;
  readonly #stepMicros: readonly number[];
  readonly #startAt: readonly Micros[] | undefined;
  #next = 0;

  constructor(spec: MeasuredSpec) {
    assert(spec.stepMicros.length > 0, "a measured step time has at least one step");
    this.#stepMicros = spec.stepMicros;
    this.#startAt = spec.startAt;
  }

  /** The next duration; after the end of the record its last one again. */
  micros(): number {
    const last = this.#stepMicros.length - 1;
    const micros = this.#stepMicros[this.#next < last ? this.#next : last];
    this.#next++;
    assert(micros !== undefined, "a measured step exists");
    return micros;
  }

  /** When the next step may start; undefined where the record does not say. */
  nextStartAt(): Micros | undefined {
    return this.#startAt?.[this.#next];
  }
}
