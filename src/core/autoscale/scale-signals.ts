import type { Micros } from "../base/units.ts";

/** What an autoscaler sees of a deployment: aggregates alone, as late as whoever collects them delivers them. */
export interface ScaleSignals {
  readonly at: Micros;
  /** Replicas that take requests. */
  readonly ready: number;
  /** Requests that wait in engines, and that run there, of all ready replicas together. */
  readonly waiting: number;
  readonly running: number;
  /** Requests that all ready replicas may run at once (`max_num_seqs`). */
  readonly runningMax: number;
  /** Mean over ready replicas of the part of their KV blocks that is in use, in [0, 1]. */
  readonly kvUtilization: number;
  /** KV capacity of one replica, and mean prompt length of the requests since the last look (0 for none), in tokens. */
  readonly kvTokens: number;
  readonly promptTokensMean: number;
  /** Arrivals since the last look, per second. */
  readonly requestsPerSecond: number;
  /** The most arrivals per second that are still to come within the time that a new replica takes; for `oracle` alone. */
  readonly requestsPerSecondAhead: number | undefined;
}

/** How full a replica is on average, in [0, 1]: the larger part of its KV blocks and of its places for requests. */
export function utilizationOf({ kvUtilization, running, runningMax }: ScaleSignals): number {
  return Math.max(kvUtilization, runningMax === 0 ? 0 : running / runningMax);
}

/** Requests in flight per ready replica: what waits and what runs. */
export function inFlightPerReplica({ ready, waiting, running }: ScaleSignals): number {
  return ready === 0 ? 0 : (waiting + running) / ready;
}
