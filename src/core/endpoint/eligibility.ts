import type { Endpoint } from "./endpoint.ts";

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

/** Indexes into ELIGIBILITY. */
export const INELIGIBLE = {
  unknownModel: ELIGIBILITY.indexOf("unknown-model"),
  cordoned: ELIGIBILITY.indexOf("cordoned"),
  tried: ELIGIBILITY.indexOf("tried"),
  breaker: ELIGIBILITY.indexOf("breaker"),
  hung: ELIGIBILITY.indexOf("hung"),
  subset: ELIGIBILITY.indexOf("subset"),
  pool: ELIGIBILITY.indexOf("pool"),
  role: ELIGIBILITY.indexOf("role"),
  answers: ELIGIBILITY.indexOf("answers"),
  pair: ELIGIBILITY.indexOf("pair"),
  unhealthy: ELIGIBILITY.indexOf("unhealthy"),
  outlier: ELIGIBILITY.indexOf("outlier"),
  slowStart: ELIGIBILITY.indexOf("slow-start"),
  asleep: ELIGIBILITY.indexOf("asleep"),
};

/** Whether an endpoint has the role for something. */
export type MayServe = (endpoint: Endpoint) => boolean;
