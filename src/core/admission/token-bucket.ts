import type { RouteRequest } from "../request/request.ts";
import { BoundedTenants } from "../tenant/bounded-tenants.ts";
import { MICROS_PER_SECOND, type Micros } from "../base/units.ts";
import { ADMIT, type Admission, type AdmissionPolicy, type OnLimit, type UsedWindows, above } from "./admission.ts";
import type { LimitUse } from "./limit-use.ts";
import { type Subject, subjectOf } from "./subject.ts";

export interface TokenBucketOptions {
  /** Tokens that a full bucket holds. */
  readonly bucketTokens: number;
  readonly refillPerSecond: number;
  /** What a request takes: its prompt's tokens, or one. */
  readonly cost: "prompt-tokens" | "requests";
  /** Who has a bucket of their own. */
  readonly per: Subject;
  /** A request that finds too few tokens is refused, or waits until there are enough. */
  readonly onEmpty: OnLimit;
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
export class TokenBucket implements AdmissionPolicy {
  readonly name = "token-bucket";
  readonly holds = false;
  readonly continues: boolean;
  readonly #options: TokenBucketOptions;
  readonly #buckets: BoundedTenants<Bucket>;

  /** With `previous` its buckets go on as they are, if they are of the same subjects and unit. */
  constructor(options: TokenBucketOptions, previous?: TokenBucket) {
    this.#options = options;
    const { per, cost, bucketTokens } = options;
    const same = previous !== undefined && previous.#options.per === per && previous.#options.cost === cost;
    this.continues = same;
    this.#buckets = same ? previous.#buckets : new BoundedTenants((at): Bucket => ({ tokens: bucketTokens, at }));
  }

  check(request: RouteRequest, at: Micros): Admission {
    const { bucketTokens, refillPerSecond, per, onEmpty } = this.#options;
    const tokens = this.#tokensAt(this.#buckets.peek(subjectOf(per, request)), at);
    const cost = this.#costOf(request);
    if (cost <= tokens) return ADMIT;
    if (cost > bucketTokens) return { action: "reject", reason: "bucket-empty" };
    return above(onEmpty, "bucket-empty", ((cost - tokens) * MICROS_PER_SECOND) / refillPerSecond);
  }

  admitted(request: RouteRequest, at: Micros, requests = 1): void {
    const bucket = this.#buckets.of(subjectOf(this.#options.per, request), at);
    bucket.tokens = this.#tokensAt(bucket, at) - requests * this.#costOf(request);
    bucket.at = at;
  }

  ended(): void {}

  /** What is missing to a full bucket. */
  uses(at: Micros): LimitUse[] {
    const { bucketTokens: max, cost: of } = this.#options;
    return Array.from(this.#buckets.entries(), ([subject, bucket]) => {
      return { subject, of, used: max - this.#tokensAt(bucket, at), max };
    });
  }

  get windows(): UsedWindows {
    const { per, cost, bucketTokens } = this.#options;
    return {
      measure: `token-bucket ${per} ${cost}`,
      subjectOf: (request) => subjectOf(per, request),
      list: (at) =>
        Array.from(this.#buckets.entries(), ([subject, bucket]) => {
          return { subject, passedMicros: 0, counts: [Math.round(bucketTokens - this.#tokensAt(bucket, at))] };
        })
          .filter(({ counts }) => counts[0]! > 0)
          .toReversed(),
      raise: (at, { subject, ageMicros = 0, counts }) => {
        const { refillPerSecond } = this.#options;
        const missing = (counts[0] ?? 0) - (ageMicros * refillPerSecond) / MICROS_PER_SECOND;
        if (missing <= 0) return;
        const bucket = this.#buckets.of(subject, at);
        bucket.tokens = Math.min(this.#tokensAt(bucket, at), bucketTokens - missing);
        bucket.at = at;
      },
    };
  }

  #tokensAt(bucket: Bucket | undefined, at: Micros): number {
    const { bucketTokens, refillPerSecond } = this.#options;
    if (bucket === undefined) return bucketTokens;
    return Math.min(bucketTokens, bucket.tokens + ((at - bucket.at) * refillPerSecond) / MICROS_PER_SECOND);
  }

  #costOf(request: RouteRequest): number {
    return this.#options.cost === "requests" ? 1 : request.promptTokens;
  }
}
