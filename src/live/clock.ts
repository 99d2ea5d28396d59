import { MICROS_PER_MILLI, type Micros } from "#core/units.ts";

/** What a thread's clock is behind that of the first thread. */
let behindMillis = 0;

/** Monotonic microseconds since this process started; the only clock that reaches the core. */
export function nowMicros(): Micros {
  return Math.round((performance.now() + behindMillis) * MICROS_PER_MILLI);
}

/** The machine's monotonic clock at `nowMicros() === 0`, in milliseconds; the same number in all threads of a process. */
export function clockOrigin(): number {
  return Number(process.hrtime.bigint()) / NANOS_PER_MILLI - performance.now() - behindMillis;
}

/** From now on this thread has the time of the one that this origin is of. */
export function followClock(origin: number): void {
  behindMillis += clockOrigin() - origin;
}

const NANOS_PER_MILLI = 1e6;

/** Wall time of `nowMicros() === 0`, in microseconds since 1970. */
export const WALL_START_MICROS: number = Math.round(performance.timeOrigin * MICROS_PER_MILLI);
