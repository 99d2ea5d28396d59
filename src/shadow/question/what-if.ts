import { availableParallelism } from "node:os";
import type { ScalingFigures } from "#sim/setting/scaling-options.ts";
import type { SloTargets } from "#sim/result/slo.ts";
import type { PathCounts } from "#sim/result/path-counts.ts";
import type { Distribution } from "#sim/result/distribution.ts";
import { type Backlog, backlogOf, type PredictedBacklog, predictedBacklog } from "../figure/backlog.ts";
import { type Candidate, type CandidateOutcome, type Setting, noiseSeedOf, settingOf } from "../candidate/candidate.ts";
import { type Cause, causesOf } from "../candidate/cause.ts";
import { figuresOf, type PredictionError } from "../figure/figures.ts";
import { estimateOf } from "../candidate/estimate.ts";
import { estimateError } from "./estimate-error.ts";
import type { Interval } from "../figure/interval.ts";
import { JobPool } from "../job/job-pool.ts";
import type { ReplicaFigures } from "../job/job.ts";
import { type PerMetric, perMetric } from "../figure/metric.ts";
import { measuredFigures } from "../candidate/measured.ts";
import { type ModelCheck, modelCheck } from "../candidate/model-check.ts";
import { type PairedDifference, pairedDifference } from "../figure/paired.ts";
import { type RankingSums, blockSumsOf, type Ranking, rankingOf } from "../job/ranking.ts";
import type { Observed } from "../recorded/observed.ts";
import { profileErrors } from "./profile-errors.ts";
import { goodputOf, replicaHoursOf } from "../candidate/cost.ts";
import { sessionLosses } from "../candidate/sessions.ts";
import type { WorkKeeping } from "../job/result-memory.ts";
import { regretQuestions, REGRET_REQUESTS_MAX } from "../job/regret.ts";
import { type RegretSummary, regretSummary } from "./regret-summary.ts";
import {
  type Coverage,
  coverageOf,
  differenceInterval,
  exceedsNoise,
  type FigureIntervals,
  figureIntervals,
} from "./uncertainty.ts";

export type { Metric, PerMetric } from "../figure/metric.ts";

export interface CandidateAnswer {
  readonly name: string;
  /** What is otherwise than it was; "" for the traffic, the fleet and the engine as they were. */
  readonly scenario: string;
  readonly completed: number;
  /** What became of attempts, as the gateway's metrics count it. */
  readonly path: PathCounts;
  /** The simulation on engines without noise, and what single requests are late by: see estimateOf. */
  readonly predicted: PerMetric<Distribution | undefined>;
  /** Session completion times; undefined where no session was answered whole. */
  readonly sessions: Distribution | undefined;
  /** Prediction intervals of the figures above, from replicas; undefined where there are none. */
  readonly intervals: PerMetric<FigureIntervals | undefined>;
  /** Of a saturated one, in place of a time to the first token that cannot be known; undefined elsewhere. */
  readonly backlog: PredictedBacklog | undefined;
  /** Prompt tokens found in the engines' caches over all prompt tokens. */
  readonly hitRatio: number;
  readonly imbalance: number;
  /** What is paid for: each endpoint's time, from its order until it was gone. */
  readonly replicaHours: number;
  /** Part of all requests that got what they are promised; undefined without targets. */
  readonly goodput: number | undefined;
  /** Where the number of endpoints followed the load. */
  readonly scaling: ScalingFigures | undefined;
  /** Part of all requests that the busiest endpoint got. */
  readonly busiestShare: number;
  /** Against the profile in force: the mean as it is predicted, and what is chance over requests around it. */
  readonly difference: PerMetric<PairedDifference | undefined>;
  /** Prediction interval of the mean difference, both on the same drawn engines. */
  readonly differenceInterval: PerMetric<Interval | undefined>;
  /** Whether the mean difference is more than chance, over requests and over drawn engines. */
  readonly exceedsNoise: PerMetric<boolean | undefined>;
  /** Share of requests that went to the same endpoint as under the profile in force; undefined in another scenario. */
  readonly agreement: number | undefined;
  /** Where the difference comes from; none for the profile in force and in another scenario. */
  readonly causes: readonly Cause[];
  /** Where it was asked for, and none in another scenario. */
  readonly regret: RegretSummary | undefined;
}

export interface WhatIfAnswer {
  readonly inForce: string;
  readonly requests: number;
  /** Simulations on drawn engines behind each interval; 0 for none. */
  readonly replicas: number;
  /**
   * What is predicted of the profile in force against what really happened; MAPE and correlation are the fitted engine's,
   * request by request. Undefined where nothing was observed.
   */
  readonly modelError: PerMetric<PredictionError | undefined> | undefined;
  /** What really happened; undefined where nothing was observed. */
  readonly measured?: PerMetric<Distribution | undefined> | undefined;
  /** Requests of the workload that the model's error leaves out, by reason. They are simulated all the same. */
  readonly uncompared: Readonly<Record<string, number>>;
  /** Whether what really happened lies in the intervals of the profile in force; undefined without either. */
  readonly coverage: PerMetric<Coverage | undefined> | undefined;
  /** By mean E2E, best first; the profile in force is among them. Other scenarios come after the one that was. */
  readonly candidates: readonly CandidateAnswer[];
  /** How sure the order of the candidates of the scenario that was is, by mean E2E; in their order above. */
  readonly ranking: Ranking;
}

export interface WhatIfQuestion {
  readonly setting: Setting;
  readonly inForce: Candidate;
  readonly candidates: readonly Candidate[];
  /** In the workload's order; undefined for a workload that was never run. */
  readonly observed: readonly Observed[] | undefined;
  /** Simulations of every candidate on engines drawn from the setting's residuals; none where it is left out. */
  readonly replicas?: number;
  /** Counterfactual decisions of every candidate, as things were, and how many other endpoints are tried. */
  readonly regret?: { readonly decisions: number; readonly alternatives: number };
  /** What requests are promised, by class. */
  readonly targets?: SloTargets | undefined;
  /** Threads at most; 1 stays in this one. All cores where it is left out. */
  readonly threadsMax?: number;
  readonly progress?: (done: number, all: number) => void;
  /** Awaited after each simulation in this thread, so that a host can let it rest. */
  readonly pause?: () => Promise<void>;
  readonly keeping?: WorkKeeping;
  /** Gets each candidate's simulation on the engine as it was fitted, once it is done. */
  readonly simulated?: (outcome: CandidateOutcome) => void;
  /** Gets every candidate's requests, that in force first; they are too large for an answer. */
  readonly onOutcomes?: (outcomes: readonly CandidateOutcome[]) => void;
}

/** What other policies would have done with the same traffic. Same question, same answer, on any number of threads. */
export async function whatIf(question: WhatIfQuestion): Promise<WhatIfAnswer> {
  const { setting, inForce, regret } = question;
  const all = [inForce, ...question.candidates.filter(({ name }) => name !== inForce.name)];
  const replicas = setting.residuals === undefined ? 0 : (question.replicas ?? 0);
  const asThingsWere = all.filter(({ scenario }) => scenario === undefined).length;
  const decisions = asThingsWere * (regret?.decisions ?? 0);
  const simulations = all.reduce((sum, candidate) => sum + 1 + replicasOf(setting, candidate, replicas), 0);
  const work =
    simulations * setting.workload.length + decisions * (1 + (regret?.alternatives ?? 0)) * REGRET_REQUESTS_MAX;
  const { threadsMax = availableParallelism(), pause, keeping } = question;
  const pool = new JobPool(setting, { work, threadsMax, pause, keeping });
  const progress = counted(question.progress, simulations + decisions);
  try {
    const base = pool.run({ kind: "outcome", candidate: inForce }).then(progress);
    const run = { question, pool, base, replicas, progress };
    const parts = await Promise.all(all.map((candidate) => partOf(run, candidate)));
    question.onOutcomes?.(parts.flatMap(({ outcome }) => outcome ?? []));
    return answerOf(question, replicas, parts);
  } finally {
    await pool.close();
  }
}

/** A question on its way. */
interface Run {
  readonly question: WhatIfQuestion;
  readonly pool: JobPool;
  /** The profile in force. */
  readonly base: Promise<CandidateOutcome>;
  readonly replicas: number;
  readonly progress: <T>(result: T) => T;
}

/** What one candidate's runs came to. */
interface Part {
  readonly answer: Omit<CandidateAnswer, "intervals" | "backlog" | "differenceInterval" | "exceedsNoise">;
  /** Without what single requests are late by. */
  readonly simulated: PerMetric<Distribution | undefined>;
  readonly e2e: RankingSums;
  readonly backlog: Backlog | undefined;
  readonly replicas: readonly ReplicaFigures[];
  /** Kept where somebody wants to see it: it is by far the largest thing. */
  readonly outcome: CandidateOutcome | undefined;
  /** Of the profile in force alone. */
  readonly model: ModelCheck | undefined;
}

async function partOf({ question, pool, base, replicas, progress }: Run, candidate: Candidate): Promise<Part> {
  const { setting, inForce, observed, regret, onOutcomes } = question;
  const isBase = candidate === inForce;
  const first = isBase ? base : pool.run({ kind: "outcome", candidate }).then(progress);
  const drawn = Array.from({ length: replicasOf(setting, candidate, replicas) }, (_, i) =>
    pool.run({ kind: "replica", candidate, replica: i + 1 }).then(progress),
  );
  const asked = first.then((outcome) => {
    if (regret === undefined || candidate.scenario !== undefined) return undefined;
    const { decisions, alternatives } = regret;
    const questions = regretQuestions(candidate, outcome, decisions, alternatives, setting.seed);
    return Promise.all(questions.map((one) => pool.run({ kind: "regret", question: one }).then(progress)));
  });
  void first.then(question.simulated, () => {});
  const [outcome, own, figures, regrets] = await Promise.all([first, base, Promise.all(drawn), asked]);
  return {
    answer: {
      ...answered(setting, candidate, outcome, own),
      goodput: goodputOf(setting.workload, outcome, question.targets),
      regret: regrets && regretSummary(regrets),
    },
    simulated: perMetric((metric) => figuresOf(outcome[metric])),
    e2e: blockSumsOf(outcome.e2eMicros),
    backlog: backlogOf(outcome.arrivalMicros, outcome.ttftMicros, outcome.e2eMicros),
    replicas: figures,
    outcome: onOutcomes === undefined ? undefined : outcome,
    model: isBase && observed !== undefined ? modelCheck(outcome, observed) : undefined,
  };
}

function answered(
  setting: Setting,
  { name, scenario }: Candidate,
  outcome: CandidateOutcome,
  base: CandidateOutcome,
): Omit<Part["answer"], "regret" | "goodput"> {
  const { workload } = setting;
  let cached = 0;
  let prompt = 0;
  let same = 0;
  const perEndpoint = new Map<number, number>();
  for (const { index: i, promptTokens } of workload) {
    if (Number.isNaN(outcome.cachedTokens[i]!)) continue;
    cached += outcome.cachedTokens[i]!;
    prompt += promptTokens;
    const endpoint = outcome.endpoint[i]!;
    perEndpoint.set(endpoint, (perEndpoint.get(endpoint) ?? 0) + 1);
    if (endpoint === base.endpoint[i]) same++;
  }
  // Of other traffic or another fleet, no request is where it was.
  const isComparable = scenario === undefined;
  return {
    name,
    scenario: scenario?.label ?? "",
    completed: outcome.completed,
    path: outcome.path,
    predicted: estimateOf(outcome, settingOf(setting, scenario).residuals),
    sessions: figuresOf(sessionLosses(workload, outcome)),
    hitRatio: prompt === 0 ? 0 : cached / prompt,
    imbalance: outcome.imbalance,
    replicaHours: replicaHoursOf(outcome, settingOf(setting, scenario).endpoints.length),
    scaling: outcome.scaling,
    busiestShare: outcome.completed === 0 ? 0 : Math.max(0, ...perEndpoint.values()) / outcome.completed,
    difference: perMetric((metric) => pairedDifference(outcome[metric], base[metric], noiseSeedOf(setting))),
    agreement: !isComparable ? undefined : outcome.completed === 0 ? 0 : same / outcome.completed,
    causes: outcome === base || !isComparable ? [] : causesOf(outcome, base),
  };
}

function answerOf(
  { setting, inForce, observed }: WhatIfQuestion,
  replicas: number,
  parts: readonly Part[],
): WhatIfAnswer {
  const [base] = parts as readonly [Part, ...Part[]];
  const e2e = (part: Part) => part.answer.predicted.e2eMicros?.mean ?? Infinity;
  const ordered = parts.toSorted(
    (a, b) => Number(a.answer.scenario !== "") - Number(b.answer.scenario !== "") || e2e(a) - e2e(b),
  );
  const candidates = ordered.map(({ answer, backlog, replicas: drawn }): CandidateAnswer => {
    const { predicted, difference } = answer;
    const between = perMetric((metric) => differenceInterval(difference[metric]?.mean, drawn, base.replicas, metric));
    const intervals = perMetric((metric) => figureIntervals(predicted[metric], drawn, metric));
    const backlogs = drawn.map((one) => one.backlog);
    return {
      ...answer,
      intervals,
      backlog: predictedBacklog(backlog, backlogs, intervals.ttftMicros?.mean),
      differenceInterval: between,
      exceedsNoise: perMetric((metric) => exceedsNoise(difference[metric], between[metric])),
    };
  });
  const own = candidates.find(({ name }) => name === inForce.name);
  const compared = ordered.filter(({ answer }) => answer.scenario === "");
  const blocks =
    replicas === 0
      ? [compared.map((part) => part.e2e)]
      : Array.from({ length: replicas }, (_, r) => compared.map((part) => part.replicas[r]!.e2e));
  const { error, uncompared } = base.model ?? { error: undefined, uncompared: {} };
  const modelError =
    error && perMetric((metric) => estimateError(error[metric], base.simulated[metric], own?.predicted[metric]));
  const apart = compared.map(({ answer }) => 1 - (answer.agreement ?? 0));
  return {
    inForce: inForce.name,
    requests: setting.workload.length,
    replicas,
    modelError,
    measured: observed && measuredFigures(observed),
    uncompared,
    coverage:
      modelError && replicas > 0
        ? perMetric((metric) => coverageOf(modelError[metric], own?.predicted[metric], own?.intervals[metric]))
        : undefined,
    candidates,
    ranking: rankingOf(blocks, noiseSeedOf(setting), profileErrors(apart, modelError?.e2eMicros, setting.residuals)),
  };
}

/** None on an engine of which nobody knows how far it is off. */
function replicasOf(setting: Setting, { scenario }: Candidate, replicas: number): number {
  return settingOf(setting, scenario).residuals === undefined ? 0 : replicas;
}

/** Passes results on and counts them. */
function counted(progress: WhatIfQuestion["progress"], all: number): <T>(result: T) => T {
  let done = 0;
  return (result) => {
    progress?.(++done, all);
    return result;
  };
}
