import { hangRules } from "#config/hang-rules.ts";
import type { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import type { RouterTap } from "#live/base/router-tap.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import { HangWatch } from "#live/keeper/hang-watch.ts";
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
