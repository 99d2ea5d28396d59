import type { RouteRequest } from "../request/request.ts";
import type { Micros } from "../base/units.ts";
import { ADMIT, type Admission, type AdmissionPolicy, type OnLimit, above } from "./admission.ts";
import { InFlightCount } from "./in-flight-count.ts";
import { type LimitUse, tenantOfSubject } from "./limit-use.ts";
import { type Subject, subjectOf } from "./subject.ts";

export interface TenantQuotaOptions {
  readonly per: Subject;
  /** Requests of a tenant in flight at most. */
  readonly requestsMax: number;
  /** Others for named tenants. */
  readonly byTenant: Readonly<Record<string, number>>;
  readonly onLimit: OnLimit;
  /** Until a delayed request is asked about again. */
  readonly retryMicros: Micros;
}

/** Each tenant (or user, or model) has at most so many requests in flight. */
export class TenantQuota implements AdmissionPolicy {
  readonly name = "tenant-quota";
  readonly holds = true;
  readonly continues: boolean;
  readonly #options: TenantQuotaOptions;
  readonly #inFlight: InFlightCount;

  /** With `previous` it goes on counting where that one was, if it counts by the same. */
  constructor(options: TenantQuotaOptions, previous?: TenantQuota) {
    this.#options = options;
    const same = previous !== undefined && previous.#options.per === options.per;
    this.continues = same;
    this.#inFlight = same ? previous.#inFlight : new InFlightCount();
  }

  check(request: RouteRequest): Admission {
    const { per, onLimit, retryMicros } = this.#options;
    const isBelow = this.#inFlight.of(subjectOf(per, request)) < this.#quotaOf(request.tenant);
    return isBelow ? ADMIT : above(onLimit, "tenant-quota", retryMicros);
  }

  admitted(request: RouteRequest): void {
    this.#inFlight.add(subjectOf(this.#options.per, request));
  }

  ended(request: RouteRequest): void {
    this.#inFlight.remove(subjectOf(this.#options.per, request));
  }

  uses(): LimitUse[] {
    return Array.from(this.#inFlight.entries(), ([subject, used]) => {
      const max = this.#quotaOf(tenantOfSubject(this.#options.per, subject));
      return { subject, of: "requests", used, max } as const;
    });
  }

  #quotaOf(tenant: string | undefined): number {
    const { requestsMax, byTenant } = this.#options;
    return tenant !== undefined && Object.hasOwn(byTenant, tenant) ? byTenant[tenant]! : requestsMax;
  }
}
