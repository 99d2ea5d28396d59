import type { HangOptions } from "#core/endpoint/hang-judge.ts";
import { MICROS_PER_MILLI } from "#core/units.ts";
import type { EndpointDirectory } from "#live/discovery/endpoint-directory.ts";
import type { RouterTap } from "#live/router-tap.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import { HangWatch } from "#live/upstream/hang-watch.ts";
import type { Config } from "#config/schema.ts";

/** Judges which endpoints hang, as configured. Switched off it never finds that any does. */
export function hangWatch(
  { health }: Config,
  tap: RouterTap,
  directory: EndpointDirectory,
  faults: FaultLog,
): HangWatch {
  return new HangWatch({
    tap,
    directory,
    servedUntilWell: health.servedUntilWell,
    report: faults.report,
    judge: hangRules(health),
  });
}

/** The `health` section as the core takes it. Switched off no time is ever over. */
export function hangRules(health: Config["health"]): HangOptions {
  const micros = (millis: number): number => (health.enabled ? millis * MICROS_PER_MILLI : Infinity);
  return {
    silentMicros: micros(health.silentMillis),
    probesFailedMin: health.probesFailedMin,
    unansweredMicros: micros(health.unansweredMillis),
    stalledMicros: micros(health.stalledMillis),
    unwatchedMicros: micros(health.unwatchedMillis),
    usualFactor: health.usualFactor,
    probesAnsweredMin: health.probesAnsweredMin,
    returnMicros: micros(health.returnMillis),
    returnMicrosMax: micros(health.returnMillisMax),
  };
}
