import type { BreakerOptions } from "#core/endpoint/breaker.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { Config } from "./schema.ts";

/** `routing.breaker` as the core takes it. */
export function breakerOptions({ routing: { breaker } }: Pick<Config, "routing">): BreakerOptions {
  return {
    failuresMax: breaker.failuresMax,
    pauseMicros: breaker.pauseMillis * MICROS_PER_MILLI,
    pauseMicrosMax: breaker.pauseMillisMax * MICROS_PER_MILLI,
    jitterShare: breaker.jitterShare,
    saturatedPauseMicros: breaker.saturatedPauseMillis * MICROS_PER_MILLI,
    drainingPauseMicros: breaker.drainingPauseMillis * MICROS_PER_MILLI,
  };
}
