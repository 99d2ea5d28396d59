import type { AdmissionSpec, QueueSpec } from "#core/admission/admission-spec.ts";
import type { LimitSpec } from "#core/admission/create.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { Config } from "./schema.ts";

type AdmissionConfig = Config["admission"];
type LimitConfig = AdmissionConfig["limits"][string];

/** Who is let in, as the router takes it; undefined where the configuration keeps nobody out and lets nobody wait. */
export function admissionSpec(config: AdmissionConfig): AdmissionSpec | undefined {
  const { limits, modelCap, classes, defaultClass, priority, saturation, shedAt, queue } = config;
  const isPlain = !modelCap.enabled && !queue.enabled && priority === undefined && shedAt === undefined;
  if (isPlain && Object.keys(limits).length === 0) return undefined;
  const { enabled: capped, ...cap } = modelCap;
  return plain({
    limits: Object.fromEntries(Object.entries(limits).map(([name, limit]) => [name, limitSpec(limit)])),
    modelCap: capped ? cap : undefined,
    classes: { scores: classes, defaultScore: classes[defaultClass]! },
    priority,
    saturation,
    shedAt,
    queue: queueSpec(queue),
  });
}

function limitSpec(limit: LimitConfig): LimitSpec {
  switch (limit.type) {
    case "token-bucket": {
      const { onLimit: onEmpty, ...rest } = limit;
      return { ...rest, onEmpty };
    }
    case "rate-limit":
    case "usage-quota": {
      const { windowMillis, ...rest } = limit;
      return { ...rest, windowMicros: micros(windowMillis) };
    }
    case "tenant-quota":
    case "hard-cap": {
      const { retryMillis, ...rest } = limit;
      return { ...rest, retryMicros: micros(retryMillis) };
    }
  }
}

function queueSpec(queue: AdmissionConfig["queue"]): QueueSpec | undefined {
  const { enabled, ttlMillis, expectedMillisMax, emptyPool, ...rest } = queue;
  if (!enabled) return undefined;
  const expectedMicrosMax = expectedMillisMax === undefined ? undefined : micros(expectedMillisMax);
  const { ttlMillis: emptyMillis, ...budget } = emptyPool;
  return {
    ...rest,
    ttlMicros: micros(ttlMillis),
    expectedMicrosMax,
    emptyPool: { ...budget, ttlMicros: micros(emptyMillis) },
  };
}

function micros(millis: number): number {
  return Math.round(millis * MICROS_PER_MILLI);
}

/** Without keys that are undefined, as a trace reads it back. */
function plain(spec: AdmissionSpec): AdmissionSpec {
  return JSON.parse(JSON.stringify(spec)) as AdmissionSpec;
}
