import type { Micros } from "#core/units.ts";
import type { SignalOptions } from "./signal-options.ts";

/** As the gateway reads: each endpoint every interval, at times spread over it, known at once, and none lost. */
export function scrapedEvery(intervalMicros: Micros): Extract<SignalOptions, { mode: "scrape" }> {
  return { mode: "scrape", intervalMicros, phase: "spread", delayMicros: 0, lossShare: 0 };
}
