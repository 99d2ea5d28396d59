import { scrapedAndOwnRequests } from "../endpoint/gauge.ts";
import type { Snapshot } from "../endpoint/snapshot.ts";

/** What a scorer takes an endpoint's load to be. */
export const LOAD_MEASURE = {
  type: "choice",
  default: "requests",
  values: ["requests", "scraped-and-own"],
  meaning: "load: every request once, or queue and batch as scraped plus our own in flight (BLIS)",
} as const;

/** Load of an endpoint in requests. */
export function measuredLoad(snapshot: Snapshot, measure: (typeof LOAD_MEASURE.values)[number]): number {
  return measure === "requests" ? snapshot.effectiveLoad : scrapedAndOwnRequests(snapshot);
}
