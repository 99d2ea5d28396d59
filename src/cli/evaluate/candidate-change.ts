import { admission as ADMISSION } from "#config/admission-section.ts";
import { admissionSpec } from "#config/admission-spec.ts";
import { autoscaleByName, type AutoscaleSection } from "#config/autoscale-policy.ts";
import { ConfigError } from "#config/config-error.ts";
import { checkShape, problemLine } from "#config/problem.ts";
import type { AdmissionSpec } from "#core/admission/admission-spec.ts";
import type { ParameterValue } from "#core/plugin/spec.ts";
import type { Scenario, Setting } from "#shadow/question/candidate.ts";
import { scalingOf } from "../autoscale-flags.ts";
import { equalEndpoints } from "../equal-endpoints.ts";

type Parameters = Readonly<Record<string, ParameterValue>>;

/** What a candidate changes beside its profile. */
export interface CandidateChange {
  /** Keys of the configuration's section `admission`; undefined where they are as recorded. */
  readonly admission?: { readonly spec: AdmissionSpec | undefined; readonly section: object } | undefined;
  readonly autoscale?: { readonly section: AutoscaleSection; readonly seconds: AutoscaleSeconds } | undefined;
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
export const CHANGES: ReadonlySet<string> = new Set(["admission", "autoscale"]);

/**
 * `admission.KEY` as in the configuration's section admission, what is not given having its default; `autoscale.type` with
 * the keys of a policies file, and the times above. Undefined where there is neither; throws ConfigError.
 */
export function candidateChange(parameters: Parameters): CandidateChange | undefined {
  const [admission, autoscale] = ["admission", "autoscale"].map((head) =>
    Object.entries(parameters).flatMap(([path, value]): [string, ParameterValue][] =>
      path.startsWith(`${head}.`) ? [[path.slice(head.length + 1), value]] : [],
    ),
  ) as [[string, ParameterValue][], [string, ParameterValue][]];
  if (admission.length + autoscale.length === 0) return undefined;
  return {
    ...(admission.length > 0 && { admission: admissionOf(admission) }),
    ...(autoscale.length > 0 && { autoscale: autoscaleOf(autoscale) }),
  };
}

/** The candidate's traffic and fleet where it is simulated on a setting. */
export function scenarioOf({ admission, autoscale }: CandidateChange, { endpoints }: Setting): Scenario {
  return {
    label: "",
    ...(admission && { admission: admission.spec }),
    ...(autoscale && scaled(autoscale, endpoints)),
  };
}

function scaled(
  { section, seconds }: NonNullable<CandidateChange["autoscale"]>,
  endpoints: Setting["endpoints"],
): Pick<Scenario, "scaling" | "endpoints"> {
  const most = section.maxReplicas ?? endpoints.length;
  const count = Math.max(section.minReplicas ?? 1, Math.min(most, endpoints.length));
  const times = {
    autoscalerInterval: seconds.interval_seconds,
    autoscalerMetricsDelay: seconds.metrics_delay_seconds,
    provisioningDelay: seconds.provisioning_seconds,
    warmupDuration: seconds.warmup_seconds,
    drainPolicy: "wait",
  } as const;
  return {
    scaling: scalingOf({ ...section, maxReplicas: Math.max(count, most) }, times, count),
    endpoints: count <= endpoints.length ? endpoints.slice(0, count) : equalEndpoints(count),
  };
}

function admissionOf(parameters: readonly (readonly [string, ParameterValue])[]) {
  const given: Record<string, unknown> = {};
  for (const [path, value] of parameters) {
    let at = given;
    const keys = path.split(".");
    for (const key of keys.slice(0, -1)) {
      const next = Object.hasOwn(at, key) ? at[key] : (at[key] = {});
      if (typeof next !== "object" || next === null)
        throw new ConfigError([`admission.${path}: expected no value at admission.${key} beside it`]);
      at = next as Record<string, unknown>;
    }
    at[keys.at(-1)!] = value;
  }
  const checked = checkShape(ADMISSION, given);
  if (!checked.ok) throw new ConfigError(checked.problems.map((problem) => `admission.${problemLine(problem)}`));
  return { spec: admissionSpec(checked.value), section: given };
}

function autoscaleOf(parameters: readonly (readonly [string, ParameterValue])[]) {
  const { type, ...rest } = Object.fromEntries(parameters);
  if (typeof type !== "string")
    throw new ConfigError(["autoscale.type: expected a policy such as queue-depth, which the other keys go with"]);
  const seconds: Record<string, number> = { ...SECONDS };
  const params: Record<string, number> = {};
  for (const [key, value] of Object.entries(rest)) {
    if (typeof value !== "number")
      throw new ConfigError([`autoscale.${key}: expected a number, got ${JSON.stringify(value)}`]);
    const isTime = Object.hasOwn(SECONDS, key);
    const least = key === "interval_seconds" ? 1 : 0;
    if (isTime && !(value >= least && value <= SECONDS_MAX))
      throw new ConfigError([`autoscale.${key}: expected seconds from ${least} to ${SECONDS_MAX}, got ${value}`]);
    (isTime ? seconds : params)[key] = value;
  }
  return { section: autoscaleByName(type, params, "autoscale"), seconds: seconds as unknown as AutoscaleSeconds };
}
