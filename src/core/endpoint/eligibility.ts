/**
 * What the router itself removes candidates for, before any filter. Order gives the index in breakdowns. Of endpoints that
 * share a request: role: it is not for this stage; answers: it was chosen to answer; pair: no blocks go from one to the other.
 */
export const ELIGIBILITY = [
  "",
  "unknown-model",
  "cordoned",
  "tried",
  "breaker",
  "hung",
  "subset",
  "pool",
  "role",
  "answers",
  "pair",
] as const;
