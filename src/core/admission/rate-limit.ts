import type { RouteRequest } from "../request.ts";
import type { Micros } from "../units.ts";
import { BoundedTenants } from "../tenant/bounded-tenants.ts";
import { ADMIT, type Admission, type AdmissionPolicy } from "./admission.ts";

export interface RateLimitOptions {
  /** Requests admitted in any window at most. */
  readonly requestsMax: number;
  readonly windowMicros: Micros;
  /** A limit for each tenant in place of one for all. */
  readonly perTenant: boolean;
  readonly onLimit: "reject" | "delay";
}

/** Times of the last admissions, the oldest overwritten first. */
interface Recent {
  readonly times: Float64Array;
  next: number;
  count: number;
}

/** At most so many admissions in every window that slides over time: the one so many before must lie a window back. */
export function rateLimit({ requestsMax, windowMicros, perTenant, onLimit }: RateLimitOptions): AdmissionPolicy {
  const recents = new BoundedTenants((): Recent => ({ times: new Float64Array(requestsMax), next: 0, count: 0 }));
  return {
    name: "rate-limit",
    decide(request: RouteRequest, at: Micros): Admission {
      const recent = recents.of(perTenant ? request.tenant : "", at);
      const freeAt = recent.count < requestsMax ? -Infinity : recent.times[recent.next]! + windowMicros;
      if (at < freeAt) {
        const reason = "rate-limit";
        return onLimit === "reject" ? { action: "reject", reason } : { action: "delay", micros: freeAt - at, reason };
      }
      recent.times[recent.next] = at;
      recent.next = (recent.next + 1) % requestsMax;
      recent.count = Math.min(requestsMax, recent.count + 1);
      return ADMIT;
    },
    ended: () => {},
  };
}
