import type { EndpointId } from "../endpoint/endpoint.ts";

/**
 * By what it was learned where another router sent a request.
 * - header: the answer names the endpoint
 * - kv-events: an engine reported blocks that only this prompt has
 * - metrics: engines' own counters fit no other place, or few others
 * - log: a log or a span of the other router names it
 * - none: nobody knows
 */
export const OBSERVED_BY = ["header", "kv-events", "metrics", "log", "none"] as const;

/** Where a router that is not this one sent a request, as somebody beside it learned afterwards. */
export interface ObservedPlace {
  /** "" where nobody knows. */
  readonly endpoint: EndpointId;
  readonly by: (typeof OBSERVED_BY)[number];
  /** In [0, 1]: the share of what explains the observations that has it there. */
  readonly sure: number;
}

export const UNOBSERVED: ObservedPlace = { endpoint: "", by: "none", sure: 0 };
