/** What a search for a better policy may make better. */
export const OBJECTIVES = [
  "goodput",
  "cost",
  "ttft-mean",
  "ttft-p99",
  "tpot-mean",
  "tpot-p99",
  "e2e-mean",
  "e2e-p99",
  "session-mean",
  "session-p99",
] as const;
export type ObjectiveName = (typeof OBJECTIVES)[number];
