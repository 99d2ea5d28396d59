import { InvalidArgumentError, Option } from "commander";
import { RARE } from "#drive/rare-option.ts";
import { autoscaleByName, type AutoscaleSection } from "#config/autoscale-policy.ts";
import { ConfigError } from "#config/config-error.ts";
import { SCALE_POLICIES } from "#core/autoscale/scale-policy.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { DRAIN_POLICIES, type DrainPolicy, type ScalingOptions } from "#sim/setting/scaling-options.ts";

/** Of an autoscaler, whatever its policy. Times in seconds. */
export interface AutoscaleFlags {
  readonly autoscalerMin?: number;
  readonly autoscalerMax?: number;
  readonly autoscalerInterval: number;
  readonly autoscalerMetricsDelay: number;
  readonly autoscalerStep?: number;
  readonly provisioningDelay: number;
  readonly warmupDuration: number;
  readonly drainPolicy: DrainPolicy;
  readonly scaleCooldown?: number;
  readonly scaleDownStabilization?: number;
}

const MAX_DEFAULT = 8;
const COOLDOWN_SECONDS = 60;
const STABILIZATION_SECONDS = 300;
const SECONDS_MAX = 86_400;
const REPLICAS_MAX = 10_000;

/** What goes with an autoscaler. Defaults are Kubernetes' where it has one. */
export function autoscaleOptions(): readonly Option[] {
  const all = [
    new Option("--autoscaler-min <count>", "minimum number of replicas (default: the policy file's, else 1)").argParser(
      replicas,
    ),
    new Option(
      "--autoscaler-max <count>",
      `maximum number of replicas (default: the policy file's, else ${MAX_DEFAULT})`,
    ).argParser(replicas),
    new Option("--autoscaler-interval <time>", "time between two decisions of the autoscaler")
      .argParser(above0)
      .default(15, "15s"),
    new Option("--autoscaler-metrics-delay <time>", "age of the metrics that it decides on")
      .argParser(span)
      .default(15, "15s"),
    new Option("--autoscaler-step <count>", "maximum number of replicas that one decision adds or removes").argParser(
      replicas,
    ),
    new Option("--provisioning-delay <time>", "time from a decision until the engine's machine runs")
      .argParser(span)
      .default(60, "60s"),
    new Option("--warmup-duration <time>", "time from then until the engine has loaded its model and takes requests")
      .argParser(span)
      .default(60, "60s"),
    new Option(
      "--drain-policy <kind>",
      "requests of a removed replica finish there, move elsewhere if they have no token yet, or are cut",
    )
      .choices([...DRAIN_POLICIES])
      .default(DRAIN_POLICIES[0]),
    new Option(
      "--scale-cooldown <time>",
      `minimum time between two changes (default: the policy file's, else ${COOLDOWN_SECONDS}s)`,
    ).argParser(span),
    new Option(
      "--scale-down-stabilization <time>",
      "time for which no larger number may have been wanted before scaling down " +
        `(default: the policy file's, else ${STABILIZATION_SECONDS}s)`,
    ).argParser(span),
  ];
  return all.map((option) => option.helpGroup(RARE));
}

/** Throws ConfigError for bounds that hold no number, or not the `initial` one. */
export function scalingOf(section: AutoscaleSection, flags: AutoscaleFlags, initial: number): ScalingOptions {
  const min = flags.autoscalerMin ?? section.minReplicas ?? 1;
  const max = flags.autoscalerMax ?? section.maxReplicas ?? Math.max(MAX_DEFAULT, initial);
  if (min > max) throw new ConfigError([`--autoscaler-max: expected at least the ${min} of the minimum, got ${max}`]);
  if (initial < min || initial > max) {
    throw new ConfigError([
      `--autoscaler-min, --autoscaler-max: expected to hold the ${initial} replicas at the start`,
    ]);
  }
  const { policy } = section;
  if (policy.type === "threshold" && policy.down >= policy.up)
    throw new ConfigError([`scale_down_threshold: expected below the ${policy.up} to scale up, got ${policy.down}`]);
  return {
    autoscaler: {
      policy,
      min,
      max,
      cooldownMicros: micros(flags.scaleCooldown ?? section.cooldownSeconds ?? COOLDOWN_SECONDS),
      downStabilizationMicros: micros(
        flags.scaleDownStabilization ?? section.downStabilizationSeconds ?? STABILIZATION_SECONDS,
      ),
      stepMax: flags.autoscalerStep ?? max,
    },
    everyMicros: micros(flags.autoscalerInterval),
    metricsDelayMicros: micros(flags.autoscalerMetricsDelay),
    provisioningMicros: micros(flags.provisioningDelay),
    warmupMicros: micros(flags.warmupDuration),
    drain: flags.drainPolicy,
  };
}

/** `name` or `name:key=value,...`, keys as in a policies file: threshold:scale_up_threshold=0.7. */
export function scalePolicyOf(text: string, flag: string): AutoscaleSection {
  const [name, rest] = splitOnce(text, ":");
  const params = (rest === undefined ? [] : rest.split(",")).map((pair): [string, number] => {
    const [key, value = ""] = splitOnce(pair, "=");
    const number = value.trim() === "" ? NaN : Number(value);
    if (Number.isNaN(number))
      throw new ConfigError([
        `${flag}: expected ${SCALE_POLICIES.join(", ")}, optionally with :key=number,..., got ${text}`,
      ]);
    return [key.trim(), number];
  });
  return autoscaleByName(name, Object.fromEntries(params), flag);
}

function splitOnce(text: string, by: string): [string, string?] {
  const at = text.indexOf(by);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + by.length)];
}

function micros(seconds: number): number {
  return Math.round(seconds * MICROS_PER_SECOND);
}

function replicas(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isInteger(value) || value < 1 || value > REPLICAS_MAX)
    throw new InvalidArgumentError(`expected a whole number from 1 to ${REPLICAS_MAX}`);
  return value;
}

const UNITS: Readonly<Record<string, number>> = { "": 1, ms: 0.001, s: 1, m: 60, h: 3_600 };

/** Seconds, or with a unit: 500ms, 30s, 5m, 1h. */
function span(text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text.trim()) ?? [];
  const seconds = Number(number) * (UNITS[unit ?? ""] ?? 1);
  if (number === undefined || seconds > SECONDS_MAX)
    throw new InvalidArgumentError(`expected a time such as 30s, 500ms or 5m, to ${SECONDS_MAX} s`);
  return seconds;
}

function above0(text: string): number {
  const seconds = span(text);
  if (seconds === 0) throw new InvalidArgumentError("expected a time above 0");
  return seconds;
}
