import type { RouteRequest } from "../request.ts";
import { MICROS_PER_SECOND, type Micros } from "../units.ts";
import { BoundedTenants } from "../tenant/bounded-tenants.ts";
import { ADMIT, type Admission, type AdmissionPolicy } from "./admission.ts";

export interface TokenBucketOptions {
  /** Tokens that a full bucket holds. */
  readonly bucketTokens: number;
  readonly refillPerSecond: number;
  /** What a request takes: its prompt's tokens, or one. */
  readonly cost: "prompt-tokens" | "requests";
  /** A bucket for each tenant in place of one for all. */
  readonly perTenant: boolean;
  /** A request that finds too few tokens is refused, or waits until there are enough. */
  readonly onEmpty: "reject" | "delay";
}

interface Bucket {
  tokens: number;
  at: Micros;
}

/**
 * A bucket that refills continuously up to its size; a request takes its cost or is not admitted. One that costs more
 * than a full bucket is refused at once, since waiting would not help it.
 *
 *     tokens(t) = min(bucketTokens, tokens(t0) + (t - t0) * refillPerSecond)
 */
export function tokenBucket(options: TokenBucketOptions): AdmissionPolicy {
  const { bucketTokens, refillPerSecond, perTenant, onEmpty } = options;
  const buckets = new BoundedTenants((at): Bucket => ({ tokens: bucketTokens, at }));
  const costOf = (request: RouteRequest) => (options.cost === "requests" ? 1 : request.promptTokens);
  return {
    name: "token-bucket",
    decide(request: RouteRequest, at: Micros): Admission {
      const bucket = buckets.of(perTenant ? request.tenant : "", at);
      bucket.tokens = Math.min(bucketTokens, bucket.tokens + ((at - bucket.at) * refillPerSecond) / MICROS_PER_SECOND);
      bucket.at = at;
      const cost = costOf(request);
      if (cost <= bucket.tokens) {
        bucket.tokens -= cost;
        return ADMIT;
      }
      const reason = "bucket-empty";
      if (onEmpty === "reject" || cost > bucketTokens) return { action: "reject", reason };
      const micros = Math.ceil(((cost - bucket.tokens) * MICROS_PER_SECOND) / refillPerSecond);
      return { action: "delay", micros, reason };
    },
    ended: () => {},
  };
}
