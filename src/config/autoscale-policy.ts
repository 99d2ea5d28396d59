import * as z from "zod";
import { SCALE_POLICY_DEFAULTS, type ScalePolicySpec } from "#core/autoscale/scale-policy.ts";
import { ConfigError } from "./config-error.ts";
import { checkShape, problemLine, unknownWord } from "./problem.ts";

/** The policy of an autoscaler, and of what is common to all of them what the section states. Seconds. */
export interface AutoscaleSection {
  readonly policy: ScalePolicySpec;
  readonly minReplicas: number | undefined;
  readonly maxReplicas: number | undefined;
  readonly cooldownSeconds: number | undefined;
  readonly downStabilizationSeconds: number | undefined;
}

const part = z.number().gt(0).max(1);
const replicas = z.int().min(1).max(10_000).optional();
const seconds = z.number().min(0).max(86_400).optional();
const common = {
  min_replicas: replicas,
  max_replicas: replicas,
  cooldown_seconds: seconds,
  scale_down_stabilization_seconds: seconds,
};
const tolerance = z.number().min(0).max(1);
const { threshold, saturation, oracle, "target-utilization": target, "queue-depth": depth } = SCALE_POLICY_DEFAULTS;

/** `autoscale:` of a policies file. */
export const AUTOSCALE_SCHEMA = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("threshold"),
    params: z
      .strictObject({
        ...common,
        scale_up_threshold: part.default(threshold.up),
        scale_down_threshold: z.number().min(0).max(1).default(threshold.down),
      })
      .prefault({}),
  }),
  z.strictObject({
    type: z.literal("target-utilization"),
    params: z
      .strictObject({
        ...common,
        target_utilization: part.default(target.target),
        tolerance: tolerance.default(target.tolerance),
      })
      .prefault({}),
  }),
  z.strictObject({
    type: z.literal("queue-depth"),
    params: z
      .strictObject({
        ...common,
        target_per_replica: z.number().gt(0).max(1e6).default(depth.target),
        tolerance: tolerance.default(depth.tolerance),
      })
      .prefault({}),
  }),
  z.strictObject({
    type: z.literal("saturation"),
    params: z
      .strictObject({
        ...common,
        kv_cache_threshold: part.default(saturation.kvPart),
        scale_up_threshold: part.default(saturation.up),
        scale_down_boundary: z.number().min(0).max(1).default(saturation.down),
      })
      .prefault({}),
  }),
  z.strictObject({
    type: z.literal("oracle"),
    params: z
      .strictObject({
        ...common,
        requests_per_second_per_replica: z.number().gt(0).max(1e6).default(oracle.requestsPerSecond),
      })
      .prefault({}),
  }),
]);

export function autoscaleOf(given: z.output<typeof AUTOSCALE_SCHEMA>): AutoscaleSection {
  const { min_replicas, max_replicas, cooldown_seconds, scale_down_stabilization_seconds } = given.params;
  return {
    policy: policyOf(given),
    minReplicas: min_replicas,
    maxReplicas: max_replicas,
    cooldownSeconds: cooldown_seconds,
    downStabilizationSeconds: scale_down_stabilization_seconds,
  };
}

/** A policy of that name, `params` as in a file. Throws ConfigError naming what is accepted; `at` is where it was given. */
export function autoscaleByName(type: string, params: Readonly<Record<string, number>>, at: string): AutoscaleSection {
  const variant = AUTOSCALE_SCHEMA.options.find((one) => one.shape.type.value === type);
  if (variant === undefined) {
    const known = AUTOSCALE_SCHEMA.options.map((one) => one.shape.type.value);
    throw new ConfigError([`${at}: ${unknownWord("policy", type, known)}`]);
  }
  const checked = checkShape(variant, { type, params });
  if (!checked.ok) throw new ConfigError(checked.problems.map((problem) => problemLine(problem, at)));
  return autoscaleOf(checked.value);
}

function policyOf(given: z.output<typeof AUTOSCALE_SCHEMA>): ScalePolicySpec {
  switch (given.type) {
    case "threshold":
      return { type: given.type, up: given.params.scale_up_threshold, down: given.params.scale_down_threshold };
    case "target-utilization":
      return { type: given.type, target: given.params.target_utilization, tolerance: given.params.tolerance };
    case "queue-depth":
      return { type: given.type, target: given.params.target_per_replica, tolerance: given.params.tolerance };
    case "saturation": {
      const { kv_cache_threshold, scale_up_threshold, scale_down_boundary } = given.params;
      return { type: given.type, kvPart: kv_cache_threshold, up: scale_up_threshold, down: scale_down_boundary };
    }
    case "oracle":
      return { type: given.type, requestsPerSecond: given.params.requests_per_second_per_replica };
  }
}
