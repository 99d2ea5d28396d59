/**
 * What the router itself removes candidates for, before any filter. Order gives the index in breakdowns. Of endpoints
 * that share a request: role: it is not for this stage; answers: it was chosen to answer; pair: no blocks go from one
 * to the other. unhealthy: its checks fail; outlier: it fares worse than the others; slow-start: it began lately, and
 * this request is not of its share; asleep: it would let requests wait until it is woken.
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
  "unhealthy",
  "outlier",
  "slow-start",
  "asleep",
] as const;
