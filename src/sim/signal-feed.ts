import type { Load } from "#core/endpoint/endpoint.ts";
import { type Random, nameHash, randomFor } from "#core/random.ts";
import type { Micros } from "#core/units.ts";
import type { EngineGauges } from "#engine/sink.ts";

/**
 * How engines' gauges reach the router.
 * - scrape: each endpoint is read every interval, at a phase of its own, and heard of a delay later; some are lost.
 * - at-decision: all gauges are read together at the first decision after each interval (BLIS).
 * - oracle: all gauges are read at every decision, which no deployment can.
 */
export type SignalOptions =
  | {
      readonly mode: "scrape";
      readonly intervalMicros: Micros;
      /** Shift of endpoint i's scrapes: spread evenly over the interval, or all at once. */
      readonly phase: "spread" | "together";
      readonly delayMicros: Micros;
      /** Share of scrapes that never arrive, in [0, 1). */
      readonly lossShare: number;
    }
  | { readonly mode: "at-decision"; readonly intervalMicros: Micros }
  | { readonly mode: "oracle" };

/** When each endpoint is scraped, and which scrapes are lost. */
export class ScrapePlan {
  readonly #options: Extract<SignalOptions, { mode: "scrape" }>;
  readonly #endpoints: number;
  readonly #loss: Random;

  constructor(options: Extract<SignalOptions, { mode: "scrape" }>, endpoints: number, seed: number) {
    this.#options = options;
    this.#endpoints = endpoints;
    this.#loss = randomFor(seed, nameHash("scrape-loss"));
  }

  firstAt(endpoint: number): Micros {
    const { intervalMicros, phase } = this.#options;
    return phase === "together" ? 0 : Math.floor((endpoint * intervalMicros) / this.#endpoints);
  }

  nextAt(at: Micros): Micros {
    return at + this.#options.intervalMicros;
  }

  /** When the scrape taken at `at` reaches the router; undefined when it is lost. */
  heardAt(at: Micros): Micros | undefined {
    const lost = this.#options.lossShare > 0 && this.#loss.next() < this.#options.lossShare;
    return lost ? undefined : at + this.#options.delayMicros;
  }
}

/** The gauges of an engine as a scrape of it would read. */
export function loadOf(gauges: EngineGauges): Load {
  return {
    running: gauges.running,
    waiting: gauges.waiting,
    kvUtilization: gauges.kvUtilization,
    prefixHitRatio: gauges.prefixQueriesTokens === 0 ? undefined : gauges.prefixHitsTokens / gauges.prefixQueriesTokens,
    ttftMicros: undefined,
    tpotMicros: undefined,
    tokensPerSecond: undefined,
    adaptersRunning: undefined,
    adaptersWaiting: undefined,
    adaptersMax: undefined,
    watts: undefined,
    smUtilization: undefined,
  };
}
