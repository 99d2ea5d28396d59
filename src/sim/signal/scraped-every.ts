import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";
import type { SignalOptions } from "../setting/signal-options.ts";

/** From reading an engine's page until the router has it. */
const SCRAPE_DELAY_MICROS = 5 * MICROS_PER_MILLI;

/** As the gateway reads: each endpoint every interval, at times spread over it, known a little later, and none lost. */
export function scrapedEvery(
  intervalMicros: Micros,
  delayMicros: Micros = SCRAPE_DELAY_MICROS,
): Extract<SignalOptions, { mode: "scrape" }> {
  return { mode: "scrape", intervalMicros, phase: "spread", delayMicros, lossShare: 0 };
}
