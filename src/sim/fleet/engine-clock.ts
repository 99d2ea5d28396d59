import type { Micros } from "#core/base/units.ts";

/** An engine's own time, which stands still while it hangs. */
export class EngineClock {
  /** The simulation's time less the engine's. */
  shiftMicros: Micros = 0;
  #stoodAt: Micros = -1;

  get stands(): boolean {
    return this.#stoodAt >= 0;
  }

  /** The engine's time at `at` of the simulation. */
  local(at: Micros): Micros {
    return this.#stoodAt >= 0 ? this.#stoodAt : at - this.shiftMicros;
  }

  /** What was to happen at `at` itself has not. */
  stop(at: Micros): void {
    if (this.#stoodAt < 0) this.#stoodAt = Math.max(0, at - 1 - this.shiftMicros);
  }

  start(at: Micros): void {
    if (this.#stoodAt < 0) return;
    this.shiftMicros = at - 1 - this.#stoodAt;
    this.#stoodAt = -1;
  }
}
