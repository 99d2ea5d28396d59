/** What the router itself removes candidates for, before any filter. Order gives the index in breakdowns. */
export const ELIGIBILITY = ["", "unknown-model", "cordoned", "tried", "breaker", "hung", "subset", "pool"] as const;
