import type { StepTimes } from "./step-times.ts";

/** Stable name of one engine as a router addresses it: a URL, or a URL and a data-parallel rank. */
export type EndpointId = string;

/** What is known of an engine before any traffic. */
export interface Endpoint {
  readonly id: EndpointId;
  /** Model names that it serves, adapters included; empty while unknown, which serves any. */
  readonly models: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  /** Room of its KV cache in tokens, if known. */
  readonly kvCapacityTokens: number | undefined;
  /** Requests that it runs at once (max_num_seqs), if known. */
  readonly concurrencyMax: number | undefined;
  /** Data-parallel ranks that it spreads requests over by itself, above 1; left out for one, or where unknown. */
  readonly dataParallel?: number;
  /** What its steps take by its engine file or a fit; left out where nobody knows, so that it has to be learned. */
  readonly stepTimes?: StepTimes;
}

/**
 * No engine has more of anything that it reports. Whoever reads a larger figure holds it for unknown, so that sums and
 * products in plugins stay finite: a score that is no number would fail every request for which its endpoint is a candidate.
 */
export const REPORTED_MAX = 1e12;

/** What an engine reported of itself, at one moment, no figure above REPORTED_MAX. `undefined` is unknown, which is not zero. */
export interface Load {
  /** Requests in the running batch. */
  readonly running: number | undefined;
  /** Requests that wait for admission to the batch. */
  readonly waiting: number | undefined;
  /** Share of KV blocks held by live requests, in [0, 1]. */
  readonly kvUtilization: number | undefined;
  /** Prompt tokens found in the engine's cache over prompt tokens asked for, since its start, in [0, 1]. */
  readonly prefixHitRatio: number | undefined;
  /** Mean time to first token over the last scrape interval. */
  readonly ttftMicros: number | undefined;
  /** Mean time per output token over the last scrape interval. */
  readonly tpotMicros: number | undefined;
  /** Prompt and generated tokens per second over the last scrape interval. */
  readonly tokensPerSecond: number | undefined;
  /** LoRA adapters in the batch, waiting, and the most that may run at once. */
  readonly adaptersRunning: readonly string[] | undefined;
  readonly adaptersWaiting: readonly string[] | undefined;
  readonly adaptersMax: number | undefined;
  /** Board power, summed over the endpoint's devices. */
  readonly watts: number | undefined;
  /** Streaming-multiprocessor activity in [0, 1], the mean over the endpoint's devices. */
  readonly smUtilization: number | undefined;
}
