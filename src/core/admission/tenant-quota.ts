import { assert } from "../assert.ts";
import { ADMIT, type AdmissionPolicy } from "./admission.ts";

export interface TenantQuotaOptions {
  /** Requests of a tenant in flight at most. */
  readonly requestsMax: number;
  /** Others for named tenants. */
  readonly byTenant: Readonly<Record<string, number>>;
  readonly onLimit: "reject" | "delay";
  /** Until a delayed request is asked about again. */
  readonly retryMicros: number;
}

/** Each tenant has at most so many requests in flight. Memory is that of the tenants that have any. */
export function tenantQuota({ requestsMax, byTenant, onLimit, retryMicros }: TenantQuotaOptions): AdmissionPolicy {
  const inFlight = new Map<string, number>();
  return {
    name: "tenant-quota",
    decide({ tenant }) {
      const count = inFlight.get(tenant) ?? 0;
      const quota = Object.hasOwn(byTenant, tenant) ? byTenant[tenant]! : requestsMax;
      if (count < quota) {
        inFlight.set(tenant, count + 1);
        return ADMIT;
      }
      const reason = "tenant-quota";
      return onLimit === "reject" ? { action: "reject", reason } : { action: "delay", micros: retryMicros, reason };
    },
    ended({ tenant }) {
      const count = inFlight.get(tenant) ?? 0;
      assert(count > 0, "a request that ends was admitted");
      if (count === 1) inFlight.delete(tenant);
      else inFlight.set(tenant, count - 1);
    },
  };
}
