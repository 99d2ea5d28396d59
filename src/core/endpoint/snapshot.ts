import type { Micros } from "../base/units.ts";
import type { Endpoint, EndpointId, Load } from "./endpoint.ts";
import type { PrefixSource } from "./knowledge.ts";

/** fresh: scraped within its bound. stale: scraped before. unknown: never scraped. */
export type Freshness = "fresh" | "stale" | "unknown";

/**
 * One endpoint as a decision sees it. Plugins only read it. It is valid during that decision alone: the router reuses
 * the object.
 *
 * The gauges come from the last scrape while that is fresh, else from the router's own ledger; `freshness` names which.
 */
export interface Snapshot {
  readonly id: EndpointId;
  readonly endpoint: Endpoint;
  /** Time of the decision. */
  readonly at: Micros;
  readonly freshness: Freshness;
  /** Age of `load`; -1 when there never was a scrape. */
  readonly loadAgeMicros: number;
  /** The last scrape, however old; undefined when there never was one. */
  readonly load: Load | undefined;
  /**
   * Requests that occupy the endpoint: our own in flight, plus the ones of others, which is what the last fresh scrape
   * showed beyond our own at that moment. Counts what was dispatched since the scrape, so it never goes blind.
   */
  readonly effectiveLoad: number;
  /** Share of KV blocks in use, in [0, 1]: scraped while fresh, else tokens in flight over the capacity. */
  readonly kvUtilization: number;
  /** Requests in flight there that we know of, our own and those that peers reported, counted in engine requests. */
  readonly requestsInFlight: number;
  /** Prompt tokens dispatched there, less expected hits, whose first token has not been seen. */
  readonly prefillTokensQueued: number;
  /** Prompt and output tokens of requests there that are past their first token. */
  readonly decodeTokens: number;
  /** Prompt tokens of all requests in flight there. */
  readonly promptTokensInFlight: number;
  /**
   * Leading blocks of this request's prompt that it is believed to hold. Those that lie in its host's memory count for
   * less: for as many as computing takes the time that they spare.
   */
  readonly hitBlocks: number;
  /** The same in tokens, at most the prompt's length. */
  readonly hitTokens: number;
  /** Leading blocks of the prompt that its cache holds indeed; undefined where nobody can look, as outside simulations. */
  readonly cachedBlocks?: number | undefined;
  /** Where that belief comes from. No policy reads it; it is written down with the decision. */
  readonly prefixSource: PrefixSource;
  /** Moving averages of what this router saw there; undefined before the first. */
  readonly ttftMicros: number | undefined;
  readonly tpotMicros: number | undefined;
}
