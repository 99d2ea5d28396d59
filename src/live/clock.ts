import type { Micros } from "#core/units.ts";

/** Monotonic microseconds since this process started; the only clock that reaches the core. */
export function nowMicros(): Micros {
  return Math.round(performance.now() * 1000);
}

/** Wall time of `nowMicros() === 0`, in microseconds since 1970. */
export const WALL_START_MICROS: number = Math.round(performance.timeOrigin * 1000);
