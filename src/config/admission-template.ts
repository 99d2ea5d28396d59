import * as z from "zod";
import type { LimitSpec } from "#core/admission/create.ts";
import type { UsageBounds } from "#core/admission/usage-quota.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/base/units.ts";

const above0 = (max: number) => z.number().gt(0).max(max);
const count = z.int().min(1).max(1_000_000);
const onLimit = z.enum(["reject", "delay"]).default("reject");
const retryMillis = above0(3_600_000).default(100);
const bound = z.int().min(1).max(1e12).optional();
const bounds = { max_requests: bound, max_prompt_tokens: bound, max_output_tokens: bound };

/** `admission:` of a policies file. */
export const ADMISSION_SCHEMA = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("always-admit"), params: z.strictObject({}).default({}) }),
  z.strictObject({
    type: z.literal("token-bucket"),
    params: z
      .strictObject({
        bucket_size: above0(1e12).default(10_000),
        refill_rate: above0(1e12).default(1_000),
        per_tenant: z.boolean().default(false),
        cost: z.enum(["prompt-tokens", "requests"]).default("prompt-tokens"),
        on_limit: onLimit,
      })
      .prefault({}),
  }),
  z.strictObject({
    type: z.literal("rate-limit"),
    params: z
      .strictObject({
        requests: count.default(100),
        window_seconds: above0(86_400).default(1),
        per_tenant: z.boolean().default(false),
        on_limit: onLimit,
      })
      .prefault({}),
  }),
  z.strictObject({
    type: z.literal("tenant-quota"),
    params: z
      .strictObject({
        max_in_flight: count.default(64),
        by_tenant: z.record(z.string(), count).default({}),
        on_limit: onLimit,
        retry_millis: retryMillis,
      })
      .prefault({}),
  }),
  z.strictObject({
    type: z.literal("usage-quota"),
    params: z
      .strictObject({
        ...bounds,
        by_tenant: z.record(z.string(), z.strictObject(bounds)).default({}),
        window_seconds: above0(2_678_400).default(3_600),
        per_tenant: z.boolean().default(true),
        output_tokens_assumed: z.int().min(0).max(1e9).default(256),
        on_limit: onLimit,
      })
      .prefault({}),
  }),
  z.strictObject({
    type: z.literal("hard-cap"),
    params: z
      .strictObject({ max_in_flight: count.default(1024), on_limit: onLimit, retry_millis: retryMillis })
      .prefault({}),
  }),
]);

/** The limit that a section of a policies file is. */
export function limitOf(given: z.output<typeof ADMISSION_SCHEMA>): LimitSpec {
  switch (given.type) {
    case "always-admit":
      return { type: given.type };
    case "token-bucket": {
      const { bucket_size, refill_rate, per_tenant, cost, on_limit } = given.params;
      const sizes = { bucketTokens: bucket_size, refillPerSecond: refill_rate };
      return { type: given.type, ...sizes, per: per_tenant ? "tenant" : "all", cost, onEmpty: on_limit };
    }
    case "rate-limit": {
      const { requests, window_seconds, per_tenant, on_limit } = given.params;
      const windowMicros = Math.round(window_seconds * MICROS_PER_SECOND);
      return {
        type: given.type,
        requestsMax: requests,
        windowMicros,
        per: per_tenant ? "tenant" : "all",
        onLimit: on_limit,
      };
    }
    case "tenant-quota": {
      const { max_in_flight, by_tenant, on_limit, retry_millis } = given.params;
      const limits = { requestsMax: max_in_flight, byTenant: by_tenant };
      return {
        type: given.type,
        per: "tenant",
        ...limits,
        onLimit: on_limit,
        retryMicros: Math.round(retry_millis * MICROS_PER_MILLI),
      };
    }
    case "usage-quota": {
      const { by_tenant, window_seconds, per_tenant, output_tokens_assumed, on_limit, ...own } = given.params;
      return {
        type: given.type,
        ...boundsOf(own),
        byTenant: Object.fromEntries(Object.entries(by_tenant).map(([tenant, one]) => [tenant, boundsOf(one)])),
        windowMicros: Math.round(window_seconds * MICROS_PER_SECOND),
        per: per_tenant ? "tenant" : "all",
        outputTokensAssumed: output_tokens_assumed,
        onLimit: on_limit,
      };
    }
    case "hard-cap": {
      const { max_in_flight, on_limit, retry_millis } = given.params;
      const retryMicros = Math.round(retry_millis * MICROS_PER_MILLI);
      return { type: given.type, requestsMax: max_in_flight, onLimit: on_limit, retryMicros };
    }
  }
}

function boundsOf(given: { readonly [Key in keyof typeof bounds]?: number | undefined }): UsageBounds {
  return {
    requestsMax: given.max_requests,
    promptTokensMax: given.max_prompt_tokens,
    outputTokensMax: given.max_output_tokens,
  };
}
