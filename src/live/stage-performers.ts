import { secondOf } from "./upstream/hedging/second-attempt.ts";
import type { StandbyOf } from "./upstream/standby-attempts.ts";

/** What performs stages of the catalogue here by attempts that stand by; a request has one of them at most. */
const STANDBYS: readonly StandbyOf[] = [secondOf];

export const standbyOf: StandbyOf = (exchange, first) => {
  for (const one of STANDBYS) {
    const standby = one(exchange, first);
    if (standby !== undefined) return standby;
  }
  return undefined;
};
