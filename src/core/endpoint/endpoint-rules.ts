import type { Micros } from "../base/units.ts";

/** When an endpoint that still answers is left alone for a while, for it fares worse than the others. */
export interface OutlierRules {
  /** Between two looks at all endpoints; each judges what came since the last one. */
  readonly intervalMicros: Micros;
  /** Requests that ended at an endpoint within an interval, fewer of which say nothing of it; at least 1. */
  readonly requestsMin: number;
  /** Share of them that failed, from which on it is ejected where others fail half as often at most; 0 for never. */
  readonly failureShare: number;
  /** An endpoint is ejected if its mean time per output token is this many times the others' median; 0 for never. */
  readonly slowFactor: number;
  /** First time out. Each further one is longer by as much, up to the longest; a look without a finding takes one back. */
  readonly ejectMicros: Micros;
  readonly ejectMicrosMax: Micros;
}

/** How an endpoint that is new, or comes back, gets its share. */
export interface SlowStartRules {
  /** Until it gets its whole share. */
  readonly windowMicros: Micros;
  /** What it begins with, of the requests that it would get; in (0, 1]. */
  readonly shareMin: number;
}

/** What is done with endpoints beside breakers; what is left out is not done. */
export interface EndpointRules {
  readonly outliers?: OutlierRules | undefined;
  readonly slowStart?: SlowStartRules | undefined;
  /**
   * Of the endpoints that might serve a request, the share that stays whatever checks and looks find, in [0, 1]. Where
   * fewer would be left, those that were ejected count as well, and if that is not enough, those whose checks fail.
   */
  readonly floorShare: number;
}

/** failures: too many of its requests. slow: its tokens. */
export type OutlierReason = "failures" | "slow";
