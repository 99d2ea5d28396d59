import type { Micros } from "#core/base/units.ts";

/**
 * How engines' gauges reach the router.
 * - scrape: each endpoint is read every interval, and known a delay later; a share is lost.
 * - at-decision: all gauges are read together at the first decision after each interval, and known at once (BLIS).
 * - oracle: all gauges are read at every decision, which no deployment can.
 */
export type SignalOptions =
  | {
      readonly mode: "scrape";
      readonly intervalMicros: Micros;
      /** Endpoints are read at times spread over the interval, or all at once. */
      readonly phase: "spread" | "together";
      readonly delayMicros: Micros;
      /** Share of scrapes that never arrive, in [0, 1). */
      readonly lossShare: number;
    }
  | { readonly mode: "at-decision"; readonly intervalMicros: Micros }
  | { readonly mode: "oracle" };
