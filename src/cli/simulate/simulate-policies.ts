import type { AutoscaleSection } from "#config/autoscale-policy.ts";
import { ConfigError } from "#config/config-error.ts";
import { parseScorers, type BlisPolicy, profileOfPolicy, readPolicyConfig } from "#config/policy-config.ts";
import { loadProfile, type NamedProfile } from "#config/profile-file.ts";
import {
  admissionByName,
  priorityByName,
  readSimulationPolicies,
  type SimulationPolicies,
} from "#config/simulation-policies.ts";
import { readYamlFile } from "#config/yaml-file.ts";
import type { PrioritySpec } from "#core/priority/create.ts";
import type { SchedulerPolicy } from "#engine/config.ts";
import { scalePolicyOf } from "../flag/autoscale-flags.ts";
import type { SimulateFlags } from "./simulate-flags.ts";

export type SimulatePolicies = Omit<SimulationPolicies, "routing"> & { readonly profile: NamedProfile };

const NONE: SimulationPolicies = {
  admission: undefined,
  priority: undefined,
  routing: undefined,
  scheduler: undefined,
  preemption: undefined,
  autoscale: undefined,
};

/** All policies, a flag's in place of the file's. Throws ConfigError with what is wrong. */
export function policiesOf(flags: SimulateFlags): SimulatePolicies {
  const { policyConfig, admissionPolicy, admissionBucketSize, priorityPolicy, scheduler } = flags;
  if (admissionBucketSize !== undefined && admissionPolicy === undefined)
    throw new ConfigError(["--admission-bucket-size: expected with --admission-policy token-bucket, got it alone"]);
  const file = policyConfig === undefined ? NONE : readPolicies(policyConfig);
  const priority = priorityPolicy === undefined ? file.priority : priorityByName(priorityPolicy);
  return {
    profile: profileOf(flags, file.routing),
    admission: admissionPolicy === undefined ? file.admission : admissionByName(admissionPolicy, admissionBucketSize),
    priority,
    scheduler: scheduler ?? file.scheduler ?? schedulerFor(priority),
    preemption: file.preemption,
    autoscale: autoscaleFrom(flags, file.autoscale),
  };
}

/** Priorities that differ are for engines that go by them; where nothing is stated of their queues, they do. */
function schedulerFor(priority: PrioritySpec | undefined): SchedulerPolicy | undefined {
  return priority === undefined || priority.type === "constant" ? undefined : "priority-fcfs";
}

/** Where it is asked for, by a flag or by a file; with a flag alone, the threshold policy. */
function autoscaleFrom(
  { autoscalerEnabled, autoscalerPolicy }: SimulateFlags,
  fromFile: AutoscaleSection | undefined,
): AutoscaleSection | undefined {
  if (autoscalerPolicy !== undefined) return scalePolicyOf(autoscalerPolicy, "--autoscaler-policy");
  return fromFile ?? (autoscalerEnabled ? scalePolicyOf("threshold", "--autoscaler-enabled") : undefined);
}

/** A file with the routing policy alone, or with a section for each kind of policy. */
function readPolicies(file: string): SimulationPolicies {
  const yaml = readYamlFile(file);
  const keys = yaml.ok && typeof yaml.value.value === "object" ? Object.keys(yaml.value.value ?? {}) : [];
  const isRoutingAlone = keys.some((key) => key.startsWith("routing-"));
  return isRoutingAlone ? { ...NONE, routing: readPolicyConfig(file) } : readSimulationPolicies(file);
}

/** The profile that --profile, --routing-policy, --routing-scorers or --policy-config ask for; gnomon's own without. */
function profileOf(flags: SimulateFlags, fromFile: BlisPolicy | undefined): NamedProfile {
  const { policyConfig = "--policy-config", routingPolicy, routingScorers, profile } = flags;
  const hasFlags = routingPolicy !== undefined || routingScorers !== undefined;
  if (fromFile === undefined && !hasFlags) {
    return loadProfile(profile ?? (flags.architecture === "pd" ? "gnomon-pd" : "gnomon"));
  }
  if (profile !== undefined) {
    const others = "--routing-policy, --routing-scorers or the routing of --policy-config";
    throw new ConfigError([`--profile: expected to be alone, got it together with ${others}`]);
  }
  if (fromFile !== undefined && !hasFlags) {
    return profileOfPolicy(fromFile, { policy: policyConfig, scorers: policyConfig });
  }
  // Flags take the place of the file's policy, whole; scorers alone are weighted.
  const policy = routingPolicy ?? "weighted";
  const scorers = routingScorers === undefined ? undefined : parseScorers(routingScorers);
  return profileOfPolicy({ policy, scorers }, { policy: "--routing-policy", scorers: "--routing-scorers" });
}
