import * as z from "zod";
import { MILLIS_PER_DAY, millis } from "./schema-value.ts";
import { SUBJECTS } from "#core/admission/subject.ts";

const count = () => z.int().min(1).max(100_000_000);
/** 0 lets nobody in. */
const countOrNone = () => z.int().min(0).max(100_000_000);
const tokensOrNone = () => z.int().min(0).max(1e15);
const share = () => z.number().gt(0).max(1);
const score = () => z.number().min(-1_000_000).max(1_000_000);
/** Names in one map: limits, tenants, models or classes. */
const NAMES_MAX = 10_000;
const LIMITS_MAX = 64;
const CLASSES_MAX = 32;
const SCORES = { scores: z.record(z.string(), score()).default({}), defaultScore: score().default(0) };

const named = <T extends z.ZodType>(value: T, namesMax = NAMES_MAX) =>
  z
    .record(z.string().min(1).max(256), value)
    .refine((all) => Object.keys(all).length <= namesMax, { message: `at most ${namesMax} names` });

const per = z.enum(SUBJECTS).default("tenant").describe("Who has a limit of their own; users as the body names them.");
const onLimit = z
  .enum(["reject", "delay"])
  .default("reject")
  .describe("reject: refuse at once. delay: wait in the queue.");
const retryMillis = millis(1, MILLIS_PER_DAY).default(1000).describe("Until a request above it is to ask again.");
const windowMillis = millis(1, 366 * MILLIS_PER_DAY)
  .default(60_000)
  .describe("Length of the window that slides.");
const bounds = {
  requestsMax: countOrNone().optional().describe("Requests in a window; 0 for none."),
  promptTokensMax: tokensOrNone().optional().describe("Prompt tokens in a window."),
  outputTokensMax: tokensOrNone().optional().describe("Generated tokens in a window."),
};

const limit = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("token-bucket"),
    bucketTokens: z.number().gt(0).max(1e12).default(10_000).describe("Tokens of a full bucket."),
    refillPerSecond: z.number().gt(0).max(1e12).default(1000),
    cost: z.enum(["prompt-tokens", "requests"]).default("prompt-tokens").describe("What a request takes."),
    per,
    onLimit,
  }),
  z.strictObject({
    type: z.literal("rate-limit"),
    requestsMax: z.int().min(1).max(1_000_000).default(600).describe("Requests in every window."),
    windowMillis,
    per,
    onLimit,
  }),
  z.strictObject({
    type: z.literal("tenant-quota"),
    requestsMax: countOrNone().default(64).describe("Requests in flight; 0 for none."),
    byTenant: named(countOrNone()).default({}).describe("Others for named tenants; 0 lets one of them in no more."),
    per,
    onLimit,
    retryMillis,
  }),
  z.strictObject({
    type: z.literal("usage-quota"),
    ...bounds,
    byTenant: named(z.strictObject(bounds)).default({}).describe("Others for named tenants."),
    windowMillis,
    per,
    outputTokensAssumed: z
      .int()
      .min(0)
      .max(1e9)
      .default(256)
      .describe("Of a request without a ceiling, until its end."),
    onLimit,
  }),
  z.strictObject({
    type: z.literal("hard-cap"),
    requestsMax: count().default(1024).describe("Requests in flight, of all."),
    onLimit,
    retryMillis,
  }),
]);

const modelCap = z.strictObject({
  enabled: z.boolean().default(false).describe("Whether there is one."),
  requestsMax: count().default(1024).describe("Requests in flight for one model and role; more is 503 at once."),
  byModel: named(count()).default({}).describe("Other limits, by model or model/role."),
  roleLabel: z.string().min(1).max(256).default("role").describe("Label of endpoints that holds their role."),
});

const priority = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("constant"), score: score().default(0) }),
  z.strictObject({ type: z.literal("slo-based"), ...SCORES }),
  z.strictObject({ type: z.literal("tenant-priority"), ...SCORES }),
  z.strictObject({
    type: z.literal("deadline-aware"),
    targetMillis: z.record(z.string(), z.number().gt(0).max(1e9)).default({}),
    defaultTargetMillis: z.number().gt(0).max(1e9).default(1000),
  }),
]);

const saturation = z.strictObject({
  waitingMax: z
    .number()
    .gt(0)
    .max(1e6)
    .default(5)
    .describe("Requests waiting at an endpoint from which on it is full."),
  kvUtilizationMax: share().default(0.8).describe("KV utilization from which on it is full."),
  requestsMax: count()
    .optional()
    .describe("Requests running or waiting there from which on it is full; unset: its concurrencyMax, if known."),
});

const emptyPool = z.strictObject({
  requestsMax: z
    .int()
    .min(0)
    .max(1_000_000)
    .default(0)
    .describe("Most requests that wait while there is no endpoint; 0 for none."),
  ttlMillis: millis(1, MILLIS_PER_DAY).default(300_000).describe("Longest such wait."),
  models: z.array(z.string().min(1)).max(1024).default([]).describe("Models that may have no endpoint for a while."),
});

const queue = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe("Whether requests may wait; otherwise they are refused or sent on at once."),
  requestsMax: z.int().min(1).max(1_000_000).default(1024).describe("Most requests that wait; further ones get 429."),
  promptTokensMax: z.int().min(1).max(1e15).default(16_000_000).describe("Tokens of their prompts."),
  ttlMillis: millis(1, MILLIS_PER_DAY).default(10_000).describe("Longest wait; then 503."),
  expectedMillisMax: millis(1, MILLIS_PER_DAY)
    .optional()
    .describe(
      "Longest expected wait, at the rate at which the queue has moved recently; a request that would wait longer gets 429 at once. Unset: every request that fits the queue waits.",
    ),
  waitAt: share().default(1).describe("Saturation of a pool from which on its requests wait; 1: no endpoint has room."),
  fairness: z
    .enum(["least-served", "first-come"])
    .default("least-served")
    .describe("Order within a class: the tenant that was served least, or first come, first served."),
  inputWeight: z.number().min(0).max(1000).default(1).describe("Weight of a prompt token that is not cached."),
  outputWeight: z.number().min(0).max(1000).default(2).describe("Weight of a generated token."),
  shares: named(z.number().gt(0).max(1e6)).default({}).describe("Shares by tenant; 1 for tenants not named."),
  emptyPool: emptyPool.prefault({}).describe("Requests for which there is no endpoint, as before scaling from zero."),
});

/** Scores of the classes that llm-d and BLIS know; below 0 may be shed. */
const CLASS_SCORES = { critical: 4, standard: 3, batch: -1, sheddable: -2, background: -3 };

export const admission = z
  .strictObject({
    limits: named(limit, LIMITS_MAX)
      .default({})
      .describe(
        "Limits by name; a request must pass all of them. Gateways that share count what all of them admit, some milliseconds late: in a burst each of n may admit up to a whole limit before it learns of the others, and without Redis each has the whole.",
      ),
    modelCap: modelCap.prefault({}).describe("Hard cap on requests in flight, per model and role."),
    classes: named(score(), CLASSES_MAX)
      .default(CLASS_SCORES)
      .describe("Service classes with their scores: a higher score goes first, and one below 0 may be shed."),
    defaultClass: z.string().default("standard").describe("Class of requests that name no known class."),
    priority: priority
      .optional()
      .describe(
        "Policy for the priority sent to vLLM; unset: the client's own, where clients.engineFields allows one.",
      ),
    saturation: saturation.prefault({}).describe("When an endpoint is full."),
    shedAt: share()
      .optional()
      .describe("Saturation of a pool from which on classes below 0 are refused; unset: never."),
    queue: queue.prefault({}).describe("Where requests wait for room."),
  })
  .refine(({ classes, defaultClass }) => Object.hasOwn(classes, defaultClass), {
    path: ["defaultClass"],
    message: "one of the classes",
  })
  .refine(
    ({ limits, queue: waits }) => waits.enabled || Object.values(limits).every(({ onLimit: done }) => done !== "delay"),
    { path: ["queue", "enabled"], message: "true, which a limit with onLimit delay needs" },
  );
