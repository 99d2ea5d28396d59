import type { Intake } from "#live/base/intake.ts";
import type { BlockSize } from "#live/endpoints/block-size.ts";
import type { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import type { KeeperEvent } from "#live/endpoints/keeper-event.ts";
import { FleetKeeper } from "#live/keeper/fleet-keeper.ts";
import type { HangDetector } from "#live/keeper/hang-detector.ts";
import type { PowerKeeper } from "#live/scrape/power-keeper.ts";
import type { EngineConnections } from "#live/tls/connections.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";
import type { Scraped } from "../policy/live-scrape.ts";

interface Needed extends Pick<GatewayContext, "plan"> {
  readonly intake: Intake;
  readonly directory: EndpointDirectory;
  readonly tls: { readonly connections: EngineConnections };
  readonly report: (event: KeeperEvent) => void;
  readonly power: PowerKeeper;
  readonly blockSizes: BlockSize;
  readonly hangs: HangDetector;
  /** Gives it the step times that it fitted. */
  readonly shadow: { feeds(keeper: FleetKeeper): void } | undefined;
  readonly state: Scraped;
}

/** Scrapes and probes the endpoints that it is given. */
export const keeperPart = part({
  name: "keeper",
  needs: ["plan", "intake", "directory", "tls", "report", "power", "blockSizes", "hangs", "shadow", "state"],
  start: ({ plan: { config }, intake, directory, tls, report, power, blockSizes, hangs, shadow, state }: Needed) => {
    const { intervalMillis: _given, timeoutMillis, staleAfterMillis: _stale, ...times } = config.scrape;
    const keeper = new FleetKeeper({
      intake,
      directory,
      times: { ...times, scrapeIntervalMillis: state.scrapeMillis, scrapeTimeoutMillis: timeoutMillis },
      connectMillis: config.limits.connectMillisMax,
      report,
      blockSizes,
      connections: tls.connections,
      probes: hangs,
      healthPath: config.health.path,
      ...(config.health.check.enabled && { healthChecks: config.health.check }),
      ...(config.power.exporters.length === 0 ? {} : { hardwareOf: power.of.bind(power) }),
    });
    shadow?.feeds(keeper);
    return keeper;
  },
  stop: (keeper) => keeper.stop(),
});
