import type {
  AdmissionSpec,
  EmptyPoolSpec,
  QueueSpec,
  SaturationSpec,
  ServiceClasses,
} from "#core/admission/admission-spec.ts";
import type { LimitSpec } from "#core/admission/create.ts";
import type { ModelCapOptions } from "#core/admission/model-cap.ts";
import { SUBJECTS } from "#core/admission/subject.ts";
import type { UsageBounds, UsageQuotaOptions } from "#core/admission/usage-quota.ts";
import type { PrioritySpec } from "#core/priority/create.ts";
import { integer, listOf, mapOf, number, oneOf, optional, text } from "./field-type.ts";
import { record, tagged } from "./record-type.ts";

const per = oneOf(SUBJECTS);
const onLimit = oneOf(["reject", "delay"]);
const held = { requestsMax: integer(1), onLimit, retryMicros: integer(0) };
const bounds = {
  requestsMax: optional(integer(1)),
  promptTokensMax: optional(integer(1)),
  outputTokensMax: optional(integer(1)),
};

const limit = tagged<LimitSpec, "type">("type", {
  "always-admit": record({}),
  "token-bucket": record({
    bucketTokens: number,
    refillPerSecond: number,
    cost: oneOf(["prompt-tokens", "requests"]),
    per,
    onEmpty: onLimit,
  }),
  "rate-limit": record({ requestsMax: integer(1), windowMicros: integer(1), per, onLimit }),
  "tenant-quota": record({ per, byTenant: mapOf(number), ...held }),
  "usage-quota": record<UsageQuotaOptions>({
    ...bounds,
    windowMicros: integer(1),
    per,
    byTenant: mapOf(record<UsageBounds>(bounds)),
    outputTokensAssumed: integer(0),
    onLimit,
  }),
  "hard-cap": record(held),
});

const priority = tagged<PrioritySpec, "type">("type", {
  constant: record({ score: number }),
  "slo-based": record({ scores: mapOf(number), defaultScore: number }),
  "tenant-priority": record({ scores: mapOf(number), defaultScore: number }),
  "deadline-aware": record({ targetMillis: mapOf(number), defaultTargetMillis: number }),
});

const queue = record<QueueSpec>({
  requestsMax: integer(1),
  promptTokensMax: integer(1),
  ttlMicros: integer(1),
  expectedMicrosMax: optional(integer(1)),
  waitAt: number,
  fairness: oneOf(["least-served", "first-come"]),
  inputWeight: number,
  outputWeight: number,
  shares: mapOf(number),
  emptyPool: record<EmptyPoolSpec>({ requestsMax: integer(0), ttlMicros: integer(1), models: listOf(text) }),
});

/** Who is let in, as a policy states it. */
export const admission = record<AdmissionSpec>({
  limits: mapOf(limit),
  modelCap: optional(record<ModelCapOptions>({ requestsMax: integer(1), byModel: mapOf(number), roleLabel: text })),
  classes: record<ServiceClasses>({ scores: mapOf(number), defaultScore: number }),
  priority: optional(priority),
  saturation: record<SaturationSpec>({
    waitingMax: number,
    kvUtilizationMax: number,
    requestsMax: optional(number),
  }),
  shedAt: optional(number),
  queue: optional(queue),
});
