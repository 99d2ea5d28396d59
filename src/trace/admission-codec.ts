import type { AdmissionSpec, QueueSpec, ServiceClasses } from "#core/admission/admission-spec.ts";
import { ADMISSION_POLICIES, type LimitSpec } from "#core/admission/create.ts";
import type { ModelCapOptions } from "#core/admission/model-cap.ts";
import { SUBJECTS } from "#core/admission/subject.ts";
import type { UsageBounds } from "#core/admission/usage-quota.ts";
import { PRIORITY_POLICIES, type PrioritySpec } from "#core/priority/create.ts";
import type { Fields } from "./fields.ts";

const ON_LIMIT = ["reject", "delay"] as const;

/** Reads who is let in, as a policy states it; it is written as the JSON of the spec. */
export function decodeAdmission(fields: Fields): AdmissionSpec {
  const limits = fields.object("limits");
  const saturation = fields.object("saturation");
  return {
    limits: Object.fromEntries(limits.keys().map((name) => [name, decodeLimit(limits.object(name))])),
    ...(fields.has("modelCap") && { modelCap: decodeModelCap(fields.object("modelCap")) }),
    classes: decodeClasses(fields.object("classes")),
    ...(fields.has("priority") && { priority: decodePriority(fields.object("priority")) }),
    saturation: {
      waitingMax: saturation.number("waitingMax"),
      kvUtilizationMax: saturation.number("kvUtilizationMax"),
      ...(saturation.has("requestsMax") && { requestsMax: saturation.number("requestsMax") }),
    },
    ...(fields.has("shedAt") && { shedAt: fields.number("shedAt") }),
    ...(fields.has("queue") && { queue: decodeQueue(fields.object("queue")) }),
  };
}

function decodeLimit(fields: Fields): LimitSpec {
  const type = fields.oneOf("type", ADMISSION_POLICIES);
  switch (type) {
    case "always-admit":
      return { type };
    case "token-bucket":
      return {
        type,
        bucketTokens: fields.number("bucketTokens"),
        refillPerSecond: fields.number("refillPerSecond"),
        cost: fields.oneOf("cost", ["prompt-tokens", "requests"]),
        per: fields.oneOf("per", SUBJECTS),
        onEmpty: fields.oneOf("onEmpty", ON_LIMIT),
      };
    case "rate-limit":
      return {
        type,
        requestsMax: fields.integer("requestsMax", 1),
        windowMicros: fields.integer("windowMicros", 1),
        per: fields.oneOf("per", SUBJECTS),
        onLimit: fields.oneOf("onLimit", ON_LIMIT),
      };
    case "tenant-quota":
      return {
        type,
        per: fields.oneOf("per", SUBJECTS),
        byTenant: numbers(fields.object("byTenant")),
        ...heldBack(fields),
      };
    case "usage-quota":
      return decodeUsageQuota(fields);
    case "hard-cap":
      return { type, ...heldBack(fields) };
  }
}

function heldBack(fields: Fields) {
  return {
    requestsMax: fields.integer("requestsMax", 1),
    onLimit: fields.oneOf("onLimit", ON_LIMIT),
    retryMicros: fields.integer("retryMicros", 0),
  };
}

function decodeUsageQuota(fields: Fields): LimitSpec {
  const byTenant = fields.object("byTenant");
  return {
    type: "usage-quota",
    ...bounds(fields),
    windowMicros: fields.integer("windowMicros", 1),
    per: fields.oneOf("per", SUBJECTS),
    byTenant: Object.fromEntries(byTenant.keys().map((name) => [name, bounds(byTenant.object(name))])),
    outputTokensAssumed: fields.integer("outputTokensAssumed", 0),
    onLimit: fields.oneOf("onLimit", ON_LIMIT),
  };
}

function bounds(fields: Fields): UsageBounds {
  const names = ["requestsMax", "promptTokensMax", "outputTokensMax"] as const;
  return Object.fromEntries(names.filter((name) => fields.has(name)).map((name) => [name, fields.integer(name, 1)]));
}

function decodeModelCap(fields: Fields): ModelCapOptions {
  return {
    requestsMax: fields.integer("requestsMax", 1),
    byModel: numbers(fields.object("byModel")),
    roleLabel: fields.string("roleLabel"),
  };
}

function decodeClasses(fields: Fields): ServiceClasses {
  return { scores: numbers(fields.object("scores")), defaultScore: fields.number("defaultScore") };
}

function decodePriority(fields: Fields): PrioritySpec {
  const type = fields.oneOf("type", PRIORITY_POLICIES);
  switch (type) {
    case "constant":
      return { type, score: fields.number("score") };
    case "slo-based":
    case "tenant-priority":
      return { type, scores: numbers(fields.object("scores")), defaultScore: fields.number("defaultScore") };
    case "deadline-aware":
      return {
        type,
        targetMillis: numbers(fields.object("targetMillis")),
        defaultTargetMillis: fields.number("defaultTargetMillis"),
      };
  }
}

function decodeQueue(fields: Fields): QueueSpec {
  const emptyPool = fields.object("emptyPool");
  return {
    requestsMax: fields.integer("requestsMax", 1),
    promptTokensMax: fields.integer("promptTokensMax", 1),
    ttlMicros: fields.integer("ttlMicros", 1),
    ...(fields.has("expectedMicrosMax") && { expectedMicrosMax: fields.integer("expectedMicrosMax", 1) }),
    waitAt: fields.number("waitAt"),
    fairness: fields.oneOf("fairness", ["least-served", "first-come"]),
    inputWeight: fields.number("inputWeight"),
    outputWeight: fields.number("outputWeight"),
    shares: numbers(fields.object("shares")),
    emptyPool: {
      requestsMax: emptyPool.integer("requestsMax", 0),
      ttlMicros: emptyPool.integer("ttlMicros", 1),
      models: emptyPool.strings("models"),
    },
  };
}

function numbers(fields: Fields): Record<string, number> {
  return Object.fromEntries(fields.keys().map((key) => [key, fields.number(key)]));
}
