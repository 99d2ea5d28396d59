import { admission as ADMISSION } from "#config/admission-section.ts";
import { admissionSpec } from "#config/admission-spec.ts";
import type { AutoscaleSection } from "#config/autoscale-policy.ts";
import { ConfigError } from "#config/config-error.ts";
import { checkShape, problemLine } from "#config/problem.ts";
import type { AdmissionSpec } from "#core/admission/admission-spec.ts";
import type { PrioritySpec } from "#core/priority/create.ts";
import type { PreemptionPolicy, SchedulerPolicy } from "#engine/config.ts";
import type { ParameterValue } from "#core/plugin/spec.ts";
import type { Scenario, Setting } from "#shadow/candidate/candidate.ts";
import { scalingOf } from "../flag/autoscale-flags.ts";
import { equalEndpoints } from "../flag/equal-endpoints.ts";
import { nested } from "./nested-parameters.ts";
import { type PolicyTemplates, templatesWith, type TemplateSections } from "./policy-templates.ts";

type Parameters = Readonly<Record<string, ParameterValue>>;

/** What a candidate changes beside its profile. `section` is what it is in a configuration or a policies file. */
export interface CandidateChange {
  /** Undefined where it is as recorded. */
  readonly admission?: { readonly spec: AdmissionSpec | undefined; readonly section: object } | undefined;
  readonly priority?: { readonly spec: PrioritySpec; readonly section: object } | undefined;
  readonly scheduler?:
    | { readonly scheduler: SchedulerPolicy; readonly preemption: PreemptionPolicy; readonly section: object }
    | undefined;
  readonly autoscale?:
    | { readonly policy: AutoscaleSection; readonly seconds: AutoscaleSeconds; readonly section: object }
    | undefined;
}

/** Times that go with any autoscaler. */
interface AutoscaleSeconds {
  readonly interval_seconds: number;
  readonly metrics_delay_seconds: number;
  readonly provisioning_seconds: number;
  readonly warmup_seconds: number;
}

const SECONDS: AutoscaleSeconds = {
  interval_seconds: 15,
  metrics_delay_seconds: 15,
  provisioning_seconds: 60,
  warmup_seconds: 60,
};
const SECONDS_MAX = 86_400;

/** Heads of the dotted parameters that are read here. */
export const CHANGES: ReadonlySet<string> = new Set(["admission", "priority", "scheduler", "autoscale"]);

/**
 * What dotted parameters change beside the profile: `admission.KEY` as in the configuration's section admission, what
 * is not given having its default; or `admission.`, `priority.`, `scheduler.` and `autoscale.KEY` as in a policies
 * file, on top of `base`, and the times above. Undefined where there is none; throws ConfigError.
 */
export function candidateChange(parameters: Parameters, base: TemplateSections = {}): CandidateChange | undefined {
  const own = Object.fromEntries([...CHANGES].map((head) => [head, below(head, parameters)]));
  const configured = isConfigured(own["admission"]!) ? own["admission"]! : undefined;
  const seconds: Record<string, number> = { ...SECONDS };
  for (const [key, value] of Object.entries(own["autoscale"]!)) {
    if (!Object.hasOwn(SECONDS, key)) continue;
    seconds[key] = secondsOf(key, value);
    delete own["autoscale"]![key];
  }
  const changed = templatesWith(configured === undefined ? own : { ...own, admission: {} }, base);
  if (changed === undefined && configured === undefined) return undefined;
  return {
    ...(changed && fromTemplates(changed, seconds as unknown as AutoscaleSeconds)),
    ...(configured && { admission: admissionOf(configured) }),
  };
}

function fromTemplates({ policies, sections }: PolicyTemplates, seconds: AutoscaleSeconds): CandidateChange {
  const { admission, priority, scheduler, preemption = "tail", autoscale } = policies;
  return {
    ...(admission && { admission: { spec: admission, section: sections["admission"]! } }),
    ...(priority && { priority: { spec: priority, section: sections["priority"]! } }),
    ...(scheduler && { scheduler: { scheduler, preemption, section: sections["scheduler"]! } }),
    ...(autoscale && { autoscale: { policy: autoscale, seconds, section: sections["autoscale"]! } }),
  };
}

/** Whether parameters of admission are the configuration's: a first part is one of its keys. */
function isConfigured(own: Parameters): boolean {
  return Object.keys(own).some((path) => Object.hasOwn(ADMISSION.shape, path.split(".")[0]!));
}

function below(head: string, parameters: Parameters): Record<string, ParameterValue> {
  const own = Object.entries(parameters).filter(([path]) => path.startsWith(`${head}.`));
  return Object.fromEntries(own.map(([path, value]) => [path.slice(head.length + 1), value]));
}

function secondsOf(key: string, value: ParameterValue): number {
  const least = key === "interval_seconds" ? 1 : 0;
  if (typeof value === "number" && value >= least && value <= SECONDS_MAX) return value;
  throw new ConfigError([`autoscale.${key}: expected seconds from ${least} to ${SECONDS_MAX}, got ${value}`]);
}

/** The candidate's traffic and fleet where it is simulated on a setting. */
export function scenarioOf(change: CandidateChange, { endpoints, engine, residuals }: Setting): Scenario {
  const { admission, priority, scheduler, autoscale } = change;
  return {
    label: "",
    ...(priority && { priority: priority.spec }),
    ...(scheduler && {
      engine: { ...engine, scheduler: scheduler.scheduler, preemption: scheduler.preemption },
      residuals,
    }),
    ...(admission && { admission: admission.spec }),
    ...(autoscale && scaled(autoscale, endpoints)),
  };
}

function scaled(
  { policy, seconds }: NonNullable<CandidateChange["autoscale"]>,
  endpoints: Setting["endpoints"],
): Pick<Scenario, "scaling" | "endpoints"> {
  const most = policy.maxReplicas ?? endpoints.length;
  const count = Math.max(policy.minReplicas ?? 1, Math.min(most, endpoints.length));
  const times = {
    autoscalerInterval: seconds.interval_seconds,
    autoscalerMetricsDelay: seconds.metrics_delay_seconds,
    provisioningDelay: seconds.provisioning_seconds,
    warmupDuration: seconds.warmup_seconds,
    drainPolicy: "wait",
  } as const;
  return {
    scaling: scalingOf({ ...policy, maxReplicas: Math.max(count, most) }, times, count),
    endpoints: count <= endpoints.length ? endpoints.slice(0, count) : equalEndpoints(count),
  };
}

function admissionOf(parameters: Parameters) {
  const given = nested("admission", parameters);
  const checked = checkShape(ADMISSION, given);
  if (!checked.ok) throw new ConfigError(checked.problems.map((problem) => `admission.${problemLine(problem)}`));
  return { spec: admissionSpec(checked.value), section: given };
}
