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
  const micros = (millis: number): number => (health.enabled ? millis * MICROS_PER_MILLI : Infinity);
  return new HangWatch({
    tap,
    directory,
    servedUntilWell: health.servedUntilWell,
    report: faults.report,
    judge: {
      silentMicros: micros(health.silentMillis),
      probesFailedMin: health.probesFailedMin,
      unansweredMicros: micros(health.unansweredMillis),
      stalledMicros: micros(health.stalledMillis),
      unwatchedMicros: micros(health.unwatchedMillis),
      usualFactor: health.usualFactor,
      probesAnsweredMin: health.probesAnsweredMin,
      returnMicros: micros(health.returnMillis),
      returnMicrosMax: micros(health.returnMillisMax),
    },
  });
}
