import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";

/** Monotonic microseconds since this process started; the only clock that reaches the core. */
export function nowMicros(): Micros {
  return Math.round(performance.now() * MICROS_PER_MILLI);
}

/** Wall time of `nowMicros() === 0`, in microseconds since 1970. */
export const WALL_START_MICROS: number = Math.round(performance.timeOrigin * MICROS_PER_MILLI);
