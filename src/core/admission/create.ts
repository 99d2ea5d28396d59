import type { AdmissionPolicy } from "./admission.ts";
import { alwaysAdmit } from "./always-admit.ts";
import { HardCap, type HardCapOptions } from "./hard-cap.ts";
import { RateLimit, type RateLimitOptions } from "./rate-limit.ts";
import { TenantQuota, type TenantQuotaOptions } from "./tenant-quota.ts";
import { TokenBucket, type TokenBucketOptions } from "./token-bucket.ts";
import { UsageQuota, type UsageQuotaOptions } from "./usage-quota.ts";

/** An admission policy as plain data. */
export type LimitSpec =
  | { readonly type: "always-admit" }
  | ({ readonly type: "token-bucket" } & TokenBucketOptions)
  | ({ readonly type: "rate-limit" } & RateLimitOptions)
  | ({ readonly type: "tenant-quota" } & TenantQuotaOptions)
  | ({ readonly type: "usage-quota" } & UsageQuotaOptions)
  | ({ readonly type: "hard-cap" } & HardCapOptions);

export const ADMISSION_POLICIES = [
  "always-admit",
  "token-bucket",
  "rate-limit",
  "tenant-quota",
  "usage-quota",
  "hard-cap",
] as const satisfies readonly LimitSpec["type"][];

/** Goes on from what `previous` counted, where that is the same kind of policy and counts by the same. */
export function createAdmission(spec: LimitSpec, previous?: AdmissionPolicy): AdmissionPolicy {
  switch (spec.type) {
    case "always-admit":
      return alwaysAdmit();
    case "token-bucket":
      return new TokenBucket(spec, previous instanceof TokenBucket ? previous : undefined);
    case "rate-limit":
      return new RateLimit(spec, previous instanceof RateLimit ? previous : undefined);
    case "tenant-quota":
      return new TenantQuota(spec, previous instanceof TenantQuota ? previous : undefined);
    case "usage-quota":
      return new UsageQuota(spec, previous instanceof UsageQuota ? previous : undefined);
    case "hard-cap":
      return new HardCap(spec, previous instanceof HardCap ? previous : undefined);
  }
}
