import * as z from "zod";
import { SCHEDULER_POLICIES } from "#engine/config.ts";
import { ConfigError } from "./config-error.ts";
import type { BlisPolicy } from "./policy-config.ts";
import { checkShape, type Problem } from "./problem.ts";

/** A bundle that BLIS's simulator loads, as sections of a policies file; its routing names a policy and scorers. */
export interface BundleSections {
  readonly sections: Readonly<Record<string, object>>;
  readonly routing: BlisPolicy | undefined;
}

const positive = z.number().gt(0).max(1e12).optional();
const orDefault = <const T extends readonly [string, ...string[]]>(names: T) => z.enum(["", ...names]).default("");
const anything = z.unknown().optional();

const ADMISSION = z.strictObject({
  policy: orDefault(["always-admit", "token-bucket"]),
  token_bucket_capacity: positive,
  token_bucket_refill_rate: positive,
});

const SCHEMA = z.strictObject({
  admission: ADMISSION.optional(),
  routing: z
    .strictObject({
      policy: orDefault(["weighted", "round-robin", "least-loaded", "prefix-affinity", "always-busiest"]),
      scorers: z.array(z.strictObject({ name: z.string().min(1), weight: z.number() })).optional(),
    })
    .optional(),
  priority: z.strictObject({ policy: orDefault(["constant", "slo-based"]) }).optional(),
  scheduler: orDefault(SCHEDULER_POLICIES),
  preemption: z.strictObject({ policy: orDefault(["fcfs", "priority"]) }).optional(),
  tenant_budgets: anything,
  node_pools: anything,
  autoscaler: anything,
  instance_lifecycle: anything,
});

/** Sections that are given otherwise here. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  tenant_budgets: "admission: {type: tenant-quota} in a file with types, or --set admission.limits",
  node_pools: "--num-instances and --engine",
  autoscaler: "--autoscaler-policy saturation and its flags",
  instance_lifecycle: "--provisioning-delay and --warmup-duration",
};

/** Scorers that have another name here. */
const SCORERS: Readonly<Record<string, string>> = { "active-requests": "active-request", "vllm-dp": "vllm-load" };

/** Whether a document names policies as BLIS's bundles do, `routing: {policy: weighted}` and `scheduler: fcfs`. */
export function isBundle(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const names = (section: unknown) => typeof section === "object" && section !== null && "policy" in section;
  return Object.entries(value).some(([key, section]) =>
    key === "scheduler"
      ? typeof section === "string"
      : ["admission", "routing", "priority"].includes(key) && names(section),
  );
}

/** Throws ConfigError with every problem. */
export function bundleSections(value: unknown, lineOf: (problem: Problem) => string): BundleSections {
  const checked = checkShape(SCHEMA, value);
  if (!checked.ok) throw new ConfigError(checked.problems.map(lineOf));
  const { admission, routing, priority, scheduler, preemption, ...others } = checked.value;
  const elsewhere = Object.entries(others).flatMap(([key, given]) =>
    given === undefined ? [] : [{ path: [key], message: `expected ${ELSEWHERE[key]}, got the unsupported ${key}` }],
  );
  if (elsewhere.length > 0) throw new ConfigError(elsewhere.map(lineOf));
  return {
    sections: {
      ...(admission && { admission: admissionOf(admission) }),
      ...(priority && { priority: { type: priority.policy === "" ? "constant" : priority.policy } }),
      ...((scheduler !== "" || preemption) && {
        scheduler: {
          type: scheduler === "" ? "fcfs" : scheduler,
          params: { preemption_policy: preemption?.policy === "priority" ? "lowest-priority" : "tail" },
        },
      }),
    },
    routing: routing && {
      policy: routing.policy === "" ? "round-robin" : routing.policy,
      scorers: routing.scorers?.map(({ name, weight }) => ({ name: SCORERS[name] ?? name, weight })),
    },
  };
}

function admissionOf({ policy, token_bucket_capacity, token_bucket_refill_rate }: z.output<typeof ADMISSION>) {
  if (policy !== "token-bucket") return { type: "always-admit" };
  return {
    type: policy,
    params: {
      ...(token_bucket_capacity !== undefined && { bucket_size: token_bucket_capacity }),
      ...(token_bucket_refill_rate !== undefined && { refill_rate: token_bucket_refill_rate }),
    },
  };
}
