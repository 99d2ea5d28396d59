import type { Logger } from "pino";
import { madeForMore, scrapeMillisFor } from "#config/profile-signals.ts";
import type { ResolvedProfiles } from "#config/resolve-profiles.ts";
import type { Config } from "#config/schema.ts";
import type { FaultEvent, FaultLog } from "#live/log/fault-log.ts";

type Signalled = Pick<ResolvedProfiles, "profiles"> & { readonly config: Pick<Config, "scrape"> };

/** Time between two scrapes: the configuration's, else what the profiles of the policy are made for. */
export function scrapeMillis({ config, profiles }: Signalled): number {
  return config.scrape.intervalMillis ?? scrapeMillisFor(Object.values(profiles));
}

/** Something of a running gateway, with the time between two of its scrapes, which does not change while it runs. */
export interface Scraped {
  readonly scrapeMillis: number;
}

/** Adds it, for the policy in force, to the log; what its profiles are made for otherwise is reported. */
export function withScrape<T extends { readonly inForce: Signalled }>(
  state: T,
  log: Logger,
  { report }: Pick<FaultLog, "report">,
): T & Scraped {
  const intervalMillis = scrapeMillis(state.inForce);
  log.info({ event: "signals", intervalMillis }, "engines' gauges are read that often");
  for (const event of tooSlowFor(state.inForce, intervalMillis)) report(event);
  return { ...state, scrapeMillis: intervalMillis };
}

/** What to report where profiles decide by gauges that are older than those they are made for. */
export function tooSlowFor({ profiles }: Pick<ResolvedProfiles, "profiles">, intervalMillis: number): FaultEvent[] {
  const detail = madeForMore(Object.values(profiles), intervalMillis).join("; ");
  if (detail === "") return [];
  const done = `engines are read every ${intervalMillis} ms (scrape.intervalMillis): it decides by older gauges`;
  return [{ kind: "signals-slow", detail, done }];
}
