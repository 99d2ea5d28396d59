import * as z from "zod";
import { ADMIT_ALL, type AdmissionSpec } from "#core/admission/admission-spec.ts";
import type { LimitSpec } from "#core/admission/create.ts";
import type { PrioritySpec } from "#core/priority/create.ts";
import {
  PREEMPTION_POLICIES,
  SCHEDULER_POLICIES,
  type PreemptionPolicy,
  type SchedulerPolicy,
} from "#engine/config.ts";
import { ADMISSION_SCHEMA, limitOf } from "./admission-template.ts";
import { AUTOSCALE_SCHEMA, autoscaleOf, type AutoscaleSection } from "./autoscale-policy.ts";
import { bundleSections, isBundle } from "./blis-bundle.ts";
import { ConfigError } from "./config-error.ts";
import type { BlisPolicy } from "./policy-config.ts";
import { ROUTING_SCHEMA, routingOf } from "./routing-policy.ts";
import { checkShape, type Problem, problemLine, unknownWord } from "./problem.ts";
import { readYamlFile } from "./yaml-file.ts";

/** What a BLIS policies file holds; a section that it does not have is undefined. */
export interface SimulationPolicies {
  readonly admission: AdmissionSpec | undefined;
  readonly priority: PrioritySpec | undefined;
  readonly routing: BlisPolicy | undefined;
  readonly scheduler: SchedulerPolicy | undefined;
  readonly preemption: PreemptionPolicy | undefined;
  readonly autoscale: AutoscaleSection | undefined;
}

const above0 = (max: number) => z.number().gt(0).max(max);
const score = z.number().min(-1_000_000).max(1_000_000);
const scores = z.record(z.string(), score).default({});

const priority = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("constant"), params: z.strictObject({ score: score.default(0) }).prefault({}) }),
  z.strictObject({
    type: z.literal("slo-based"),
    params: z
      .strictObject({
        realtime_score: score.default(100),
        batch_score: score.default(10),
        default_score: score.default(50),
        scores,
      })
      .prefault({}),
  }),
  z.strictObject({
    type: z.literal("tenant-priority"),
    params: z.strictObject({ default_score: score.default(50), scores }).prefault({}),
  }),
  z.strictObject({
    type: z.literal("deadline-aware"),
    params: z
      .strictObject({
        default_target_millis: above0(1e9).default(1_000),
        target_millis: z.record(z.string(), above0(1e9)).default({}),
      })
      .prefault({}),
  }),
]);

const scheduler = z.strictObject({
  type: z.enum(SCHEDULER_POLICIES),
  params: z
    .strictObject({
      preemption_policy: z.enum(PREEMPTION_POLICIES).default("tail"),
      respect_priority: z.boolean().default(true),
      preemption_enabled: z.literal(true, "expected true: an engine without free blocks has to preempt").default(true),
    })
    .prefault({}),
});

const SCHEMA = z.strictObject({
  admission: ADMISSION_SCHEMA.optional(),
  priority: priority.optional(),
  routing: ROUTING_SCHEMA.optional(),
  scheduler: scheduler.optional(),
  autoscale: AUTOSCALE_SCHEMA.optional(),
});

const SECTIONS = {
  admission: ADMISSION_SCHEMA,
  priority,
  routing: ROUTING_SCHEMA,
  autoscale: AUTOSCALE_SCHEMA,
} as const;

/** Sections that a policies file may have. */
export const POLICY_SECTIONS: ReadonlySet<string> = new Set(Object.keys(SCHEMA.shape));

/** The first type of a section that has all these parameters; undefined where none has, or the section has one form. */
export function typeWith(section: string, params: Readonly<Record<string, unknown>>): string | undefined {
  const union = Object.hasOwn(SECTIONS, section) ? SECTIONS[section as keyof typeof SECTIONS] : undefined;
  return union?.options
    .map((option) => ({ option, type: option.shape.type.value }))
    .find(({ option, type }) => !option.safeParse({ type, params }).error?.issues.some(isUnknownKey))?.type;
}

function isUnknownKey({ code }: z.core.$ZodIssue): boolean {
  return code === "unrecognized_keys";
}

/** Reads a file with the sections admission, priority, routing and scheduler. Throws ConfigError with every problem. */
export function readSimulationPolicies(file: string): SimulationPolicies {
  const yaml = readYamlFile(file);
  if (!yaml.ok) throw new ConfigError(yaml.problems.map((problem) => problemLine(problem)));
  const { value, lineOf } = yaml.value;
  return policiesFrom(value, (problem) => problemLine(problem, `${file} line ${lineOf(problem.path)}`));
}

/** The same of a document that was read. Throws ConfigError with every problem, as lines that `lineOf` makes of them. */
export function policiesFrom(value: unknown, lineOf: (problem: Problem) => string): SimulationPolicies {
  if (isBundle(value)) {
    const { sections, routing } = bundleSections(value, lineOf);
    return { ...policiesFrom(sections, lineOf), routing };
  }
  const given = check(value, lineOf);
  return {
    admission: given.admission && asAdmission(limitOf(given.admission)),
    priority: given.priority && priorityOf(given.priority),
    routing: given.routing && routingOf(given.routing),
    scheduler: given.scheduler && schedulerOf(given.scheduler),
    preemption: given.scheduler?.params.preemption_policy,
    autoscale: given.autoscale && autoscaleOf(given.autoscale),
  };
}

/**
 * The one limit as a simulation's router has it. A request that is delayed waits without an end, and for nothing but the
 * limit: no endpoint is ever too full for it.
 */
function asAdmission(limit: LimitSpec): AdmissionSpec {
  const forever = Number.MAX_SAFE_INTEGER;
  return {
    ...ADMIT_ALL,
    limits: limit.type === "always-admit" ? {} : { [limit.type]: limit },
    queue: {
      requestsMax: forever,
      promptTokensMax: forever,
      ttlMicros: forever,
      waitAt: forever,
      fairness: "first-come",
      inputWeight: 1,
      outputWeight: 1,
      shares: {},
      emptyPool: { requestsMax: 0, ttlMicros: forever, models: [] },
    },
  };
}

function schedulerOf({ type, params }: z.output<typeof scheduler>): SchedulerPolicy {
  return type === "priority-fcfs" && !params.respect_priority ? "fcfs" : type;
}

/**
 * A policy of that name with its default parameters, but for the size of a bucket; throws ConfigError naming what is
 * accepted.
 */
export function admissionByName(name: string, bucketSize?: number): AdmissionSpec {
  if (bucketSize !== undefined && name !== "token-bucket")
    throw new ConfigError([`--admission-bucket-size: expected with --admission-policy token-bucket, got ${name}`]);
  const params = bucketSize === undefined ? {} : { params: { bucket_size: bucketSize } };
  const given = check({ admission: { type: name, ...params } }, ({ message }) => `--admission-policy: ${message}`);
  return asAdmission(given.admission === undefined ? { type: "always-admit" } : limitOf(given.admission));
}

export function priorityByName(name: string): PrioritySpec {
  const given = check({ priority: { type: name } }, ({ message }) => `--priority-policy: ${message}`);
  return given.priority === undefined ? { type: "constant", score: 0 } : priorityOf(given.priority);
}

/** First each section's type, then its parameters as that type has them, so that a message names what is accepted. */
function check(value: unknown, lineOf: (problem: Problem) => string): z.output<typeof SCHEMA> {
  const shape: Record<string, z.ZodType> = { ...SCHEMA.shape };
  const problems: Problem[] = [];
  for (const [section, union] of Object.entries(SECTIONS)) {
    const given: unknown = value !== null && typeof value === "object" ? Reflect.get(value, section) : undefined;
    if (given === undefined || given === null || typeof given !== "object") continue;
    const type: unknown = Reflect.get(given, "type");
    const variants = new Map(union.options.map((option) => [option.shape.type.value as string, option]));
    const variant = typeof type === "string" ? variants.get(type) : undefined;
    if (variant !== undefined) shape[section] = variant.optional();
    else problems.push({ path: [section, "type"], message: typeProblem(type, [...variants.keys()]) });
  }
  if (problems.length > 0) throw new ConfigError(problems.map(lineOf));
  const checked = checkShape(z.strictObject(shape), value);
  if (!checked.ok) throw new ConfigError(checked.problems.map(lineOf));
  return SCHEMA.parse(value);
}

function typeProblem(type: unknown, known: readonly string[]): string {
  return type === undefined
    ? `expected one of ${known.join(", ")}, got nothing`
    : unknownWord("type", typeof type === "string" ? type : JSON.stringify(type), known);
}

function priorityOf(given: z.output<typeof priority>): PrioritySpec {
  switch (given.type) {
    case "constant":
      return { type: given.type, score: given.params.score };
    case "slo-based": {
      const { realtime_score, batch_score, default_score, scores } = given.params;
      // `critical` is what version 2 of BLIS's workloads calls realtime.
      const named = { realtime: realtime_score, critical: realtime_score, batch: batch_score };
      return { type: given.type, scores: { ...named, ...scores }, defaultScore: default_score };
    }
    case "tenant-priority":
      return { type: given.type, scores: given.params.scores, defaultScore: given.params.default_score };
    case "deadline-aware": {
      const { target_millis, default_target_millis } = given.params;
      return { type: given.type, targetMillis: target_millis, defaultTargetMillis: default_target_millis };
    }
  }
}
