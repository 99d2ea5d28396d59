/** What an endpoint may do with a request instead of answering it. */
export const FAULTS = ["status", "refuse", "drain", "reset", "garbage", "empty", "cut", "slow", "hang"] as const;
export type Fault = (typeof FAULTS)[number];

/** Share of requests that meet each fault. */
export type Order = { readonly faults: Partial<Record<Fault, number>> } | "drain";
