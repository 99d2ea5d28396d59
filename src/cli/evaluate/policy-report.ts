import { exportLlmD } from "#config/export-llm-d.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import { causeWords } from "#shadow/report/cause-words.ts";
import type { GainPart } from "#shadow/tune/gain-parts.ts";
import { isShare, type Objective } from "#shadow/job/objective.ts";
import { millisOf, percentOf, signedPercentOf } from "../output/figure-text.ts";
import type { CandidateChange } from "./candidate-change.ts";
import type { Evaluation } from "./evaluation.ts";

/** What an evaluation is to a framework: one line of JSON. */
export interface PolicyReport {
  readonly policy_id: string;
  readonly ok: boolean;
  /** The larger the better; 1 is as good as the profile in force, of goodput its share of requests. 0 for none. */
  readonly score: number;
  readonly sim_fitness: Readonly<Record<string, number>>;
  readonly sim_metrics: Readonly<Record<string, number>>;
  /** llm-d's EndpointPickerConfig where that can express the policy, else a profile of gnomon. */
  readonly config_for_deployment: unknown;
  /** Whose configuration that is; "" for none. */
  readonly deployable_by: "llm-d" | "gnomon" | "";
  /** For a language model or a person: what the policy did otherwise, and to whom. */
  readonly reflection: string;
  /** "" for none. */
  readonly error: string;
}

/** A candidate that was evaluated. */
interface Reported {
  readonly id: string;
  readonly spec: ProfileSpec;
  readonly change?: CandidateChange | undefined;
}

export function policyReport(
  { id, spec, change }: Reported,
  inForce: string,
  objective: Objective,
  evaluation: Evaluation,
): PolicyReport {
  const metrics = metricsOf(evaluation);
  // Of who is let in and of scaling llm-d's file states nothing.
  const exported = change === undefined ? exportLlmD(spec) : undefined;
  const deployed = exported?.ok === true ? exported.value : undefined;
  return {
    policy_id: id,
    ok: true,
    score: scoreOf(objective, evaluation),
    sim_fitness: fitnessOf(objective, evaluation, metrics),
    sim_metrics: metrics,
    config_for_deployment: deployed ?? { name: id, ...spec, ...deployedChange(change) },
    deployable_by: deployed === undefined ? "gnomon" : "llm-d",
    reflection: [verdictOf(inForce, objective, evaluation, change), reflectionOf(objective, evaluation)].join("\n"),
    error: "",
  };
}

export function failedReport(id: string, error: string): PolicyReport {
  return {
    policy_id: id,
    ok: false,
    score: 0,
    sim_fitness: {},
    sim_metrics: {},
    config_for_deployment: null,
    deployable_by: "",
    reflection: `This policy could not be evaluated: ${error}. Change what is named there.`,
    error,
  };
}

/** The configuration's section admission, or sections of a policies file, and the autoscaler with its times. */
function deployedChange(change: CandidateChange | undefined): object {
  return {
    ...(change?.admission && { admission: change.admission.section }),
    ...(change?.priority && { priority: change.priority.section }),
    ...(change?.scheduler && { scheduler: change.scheduler.section }),
    ...(change?.autoscale && { autoscale: { ...change.autoscale.section, ...change.autoscale.seconds } }),
  };
}

/** Ratio to the loss in force for times, so that 1.1 is a tenth better; the share of requests for goodput. */
function scoreOf(objective: Objective, evaluation: Evaluation): number {
  const { loss, gain, replicaHours, replicaHoursBefore } = evaluation;
  // Of cost: requests that met their targets for each replica-hour, over those of the fleet as it is.
  if (objective.kind === "cost")
    return (Math.max(0, 1 - loss) * replicaHoursBefore) / (replicaHours * Math.max(1e-9, 1 - loss - gain));
  if (isShare(objective)) return 1 - loss;
  return 1 / Math.max(1e-9, 1 - gain);
}

/** BLIS's scales: latencies 1 / (1 + milliseconds), times the part of the requests that has one; throughput r / (r + 100), the others as they are. */
function fitnessOf(
  objective: Objective,
  { loss, requestsPerSecond, parts, completed, requests }: Evaluation,
  metrics: Readonly<Record<string, number>>,
): Record<string, number> {
  const answered = completed / Math.max(1, requests);
  // No latency is what a refused request had.
  const latency = (name: string) => answered / (1 + (metrics[name] ?? Infinity));
  return {
    throughput: requestsPerSecond / (requestsPerSecond + 100),
    mean_ttft: latency("ttft_mean_ms"),
    p99_ttft: latency("ttft_p99_ms"),
    mean_tpot: latency("tpot_mean_ms"),
    mean_e2e: latency("e2e_mean_ms"),
    p99_e2e: latency("e2e_p99_ms"),
    cache_hit_rate: parts.hitRatio.after,
    answered,
    ...(isShare(objective) && { slo_attainment: 1 - loss }),
  };
}

function metricsOf(evaluation: Evaluation): Record<string, number> {
  const { ttftMicros, tpotMicros, e2eMicros, parts, completed, imbalance, requestsPerSecond, gain } = evaluation;
  const of = (name: string, figures: Evaluation["e2eMicros"]) =>
    figures === undefined
      ? {}
      : {
          [`${name}_mean_ms`]: figures.mean / MICROS_PER_MILLI,
          [`${name}_p50_ms`]: figures.p50 / MICROS_PER_MILLI,
          [`${name}_p99_ms`]: figures.p99 / MICROS_PER_MILLI,
        };
  return {
    ...of("ttft", ttftMicros),
    ...of("tpot", tpotMicros),
    ...of("e2e", e2eMicros),
    hit_ratio: parts.hitRatio.after,
    completed,
    imbalance,
    requests_per_second: requestsPerSecond,
    replica_hours: evaluation.replicaHours,
    gain_over_in_force: gain,
  };
}

const CAUSES_MAX = 3;

/** Below it a gain is no figure any more. */
const GAIN_SHOWN_MIN = -10;

/** Whether it is better, and before all else whether it answers less. */
function verdictOf(
  inForce: string,
  objective: Objective,
  { gain, completed, completedBefore, requests, promptTokensMean }: Evaluation,
  change: CandidateChange | undefined,
): string {
  const unit = isShare(objective) ? " of all requests met their targets more" : "";
  const gains = gain < GAIN_SHOWN_MIN ? "is far worse" : `gains ${signedPercentOf(gain)}${unit}`;
  const verdict = `Against ${inForce} this policy ${gains}.`;
  if (completed >= completedBefore) return verdict;
  const share = (count: number): string => percentOf(count / Math.max(1, requests));
  const admission = typeOf(change?.admission?.section);
  const named = typeof admission === "string" ? `, ${admission},` : "";
  const cost =
    admission === "token-bucket"
      ? `, where a request costs its prompt's tokens (${promptTokensMean.toFixed(0)} on average) unless its cost is requests`
      : "";
  const why = change?.admission === undefined ? "" : ` Its admission${named} refuses others${cost}.`;
  return (
    `${verdict} It answers ${completed} of ${requests} requests (${share(completed)}), ${inForce} ${share(completedBefore)}: ` +
    `${requests - completed} get no answer, which counts against it.${why} What follows is of the requests that both answered.`
  );
}

/** Of a policies file's section; a configuration's has none. */
function typeOf(section: object | undefined): unknown {
  return section !== undefined && "type" in section ? section.type : undefined;
}

/** Below this share of what the profile in force answers, fewer requests are why the others are served sooner. */
const ALIKE_MIN = 0.9;

function reflectionOf(objective: Objective, evaluation: Evaluation): string {
  const { gain, parts, imbalance, completed, completedBefore } = evaluation;
  const figures = (["ttftMicros", "tpotMicros", "e2eMicros"] as const).flatMap((metric) => {
    const [before, after] = [parts.figures.before[metric], parts.figures.after[metric]];
    if (before === undefined || after === undefined) return [];
    return [
      `${metric.replace("Micros", "").toUpperCase()} mean ${millisOf(before.mean)} -> ${millisOf(after.mean)} ms, p99 ${millisOf(before.p99)} -> ${millisOf(after.p99)} ms`,
    ];
  });
  const text = (one: GainPart) =>
    isShare(objective)
      ? `${percentOf(1 - one.before)} -> ${percentOf(1 - one.after)} met their targets`
      : `${millisOf(one.before)} -> ${millisOf(one.after)} ms`;
  const isAlike = completed >= ALIKE_MIN * completedBefore;
  const groups = (isAlike ? [...parts.byPrompt, ...parts.byTurn] : []).toSorted(
    (a, b) => a.share * gain - b.share * gain,
  );
  const [worst] = groups;
  const best = groups.at(-1);
  const busiest = parts.byEndpoint.toSorted((a, b) => b.requestsAfter - a.requestsAfter)[0];
  const all = parts.byEndpoint.reduce((sum, one) => sum + one.requestsAfter, 0);
  const lines = [
    ...(figures.length === 0 ? [] : [`${figures.join("; ")}.`]),
    `Cached prompt tokens ${percentOf(parts.hitRatio.before)} -> ${percentOf(parts.hitRatio.after)}; most in flight at one endpoint over the mean ${imbalance.toFixed(2)}; the busiest endpoint got ${percentOf((busiest?.requestsAfter ?? 0) / Math.max(1, all))} of the requests.`,
    ...(best === undefined ? [] : [`It helps most: ${best.label} (${best.requests} requests): ${text(best)}.`]),
    ...(worst === undefined || worst === best
      ? []
      : [`It helps least or harms: ${worst.label} (${worst.requests} requests): ${text(worst)}.`]),
    ...(isAlike ? parts.causes : [])
      .slice(0, CAUSES_MAX)
      .map((one) => `${one.requests} requests ${causeWords(one)}: E2E ${signedMillisOf(one.e2eChangeMicros)}.`),
  ];
  return lines.join("\n");
}

function signedMillisOf(micros: number): string {
  return `${micros < 0 ? "-" : "+"}${millisOf(Math.abs(micros))} ms`;
}
