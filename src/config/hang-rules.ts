import type { HangOptions } from "#core/endpoint/hang-judge.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { Config } from "./schema.ts";

/** The `health` section as the core takes it. Switched off no time is ever over. */
export function hangRules(health: Config["health"]): HangOptions {
  const micros = (millis: number): number => (health.enabled ? millis * MICROS_PER_MILLI : Infinity);
  return {
    silentMicros: micros(health.silentMillis),
    probesFailedMin: health.probesFailedMin,
    unansweredMicros: micros(health.unansweredMillis),
    stalledMicros: micros(health.stalledMillis),
    begunMicros: micros(health.begunMillis),
    unwatchedMicros: micros(health.unwatchedMillis),
    usualFactor: health.usualFactor,
    usualMicrosMax: micros(health.usualMillisMax),
    prefillMicrosPerToken: health.prefillMicrosPerToken,
    probesAnsweredMin: health.probesAnsweredMin,
    returnMicros: micros(health.returnMillis),
    returnMicrosMax: micros(health.returnMillisMax),
  };
}
