import type { AdmissionPolicy } from "./admission.ts";
import { alwaysAdmit } from "./always-admit.ts";
import { hardCap, type HardCapOptions } from "./hard-cap.ts";
import { rateLimit, type RateLimitOptions } from "./rate-limit.ts";
import { tenantQuota, type TenantQuotaOptions } from "./tenant-quota.ts";
import { tokenBucket, type TokenBucketOptions } from "./token-bucket.ts";

/** An admission policy as plain data. */
export type AdmissionSpec =
  | { readonly type: "always-admit" }
  | ({ readonly type: "token-bucket" } & TokenBucketOptions)
  | ({ readonly type: "rate-limit" } & RateLimitOptions)
  | ({ readonly type: "tenant-quota" } & TenantQuotaOptions)
  | ({ readonly type: "hard-cap" } & HardCapOptions);

export const ADMISSION_POLICIES = ["always-admit", "token-bucket", "rate-limit", "tenant-quota", "hard-cap"] as const;

export function createAdmission(spec: AdmissionSpec): AdmissionPolicy {
  switch (spec.type) {
    case "always-admit":
      return alwaysAdmit();
    case "token-bucket":
      return tokenBucket(spec);
    case "rate-limit":
      return rateLimit(spec);
    case "tenant-quota":
      return tenantQuota(spec);
    case "hard-cap":
      return hardCap(spec);
  }
}
