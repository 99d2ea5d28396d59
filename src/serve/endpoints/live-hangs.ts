import { hangRules } from "#config/hang-rules.ts";
import type { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import type { Intake } from "#live/base/intake.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import { HangDetector } from "#live/keeper/hang-detector.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";

interface Needed extends Pick<GatewayContext, "plan"> {
  readonly intake: Intake;
  readonly directory: EndpointDirectory;
  readonly logs: { readonly faults: FaultLog };
}

/** Judges which endpoints hang, as configured. Switched off it never finds that any does. */
export const hangsPart = part({
  name: "hangs",
  needs: ["plan", "intake", "directory", "logs"],
  start: ({ plan: { config }, intake, directory, logs }: Needed) => {
    const { health } = config;
    const { servedUntilWell } = health;
    const hangs = new HangDetector({
      intake,
      directory,
      servedUntilWell,
      report: logs.faults.report,
      judge: hangRules(health),
    });
    hangs.start();
    return hangs;
  },
  stop: (hangs) => hangs.stop(),
});
