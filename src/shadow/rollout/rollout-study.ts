import { availableParallelism } from "node:os";
import type { Guardrail } from "#core/rollout/judge/guardrail.ts";
import type { Design } from "#core/rollout/plan/rollout-plan.ts";
import type { Micros } from "#core/base/units.ts";
import type { Distribution } from "#sim/result/distribution.ts";
import { type Candidate, type CandidateOutcome, type Setting } from "../candidate/candidate.ts";
import { sessionLosses } from "../candidate/sessions.ts";
import { figuresOf } from "../figure/figures.ts";
import { JobPool } from "../job/job-pool.ts";
import type { WorkKeeping } from "../job/result-memory.ts";
import { type PerMetric, perMetric } from "../figure/metric.ts";
import type { Observed } from "../recorded/observed.ts";
import { type DesignStudy, designStudy, type PowerQuestion } from "./design-study.ts";
import { type Recommendation, recommended } from "./recommendation.ts";
import type { NamedDesign } from "../job/rollout-design.ts";
import { type RolloutPair, type ShownIntervals, shownIntervals } from "./shown-interval.ts";
import type { PlannedFigureKey } from "../job/rollout-sample.ts";
import { rolloutTruth } from "./rollout-truth.ts";
import type { SimulatedRollout } from "../job/simulated-rollout.ts";
import { trafficErrors, type TrafficErrors } from "./traffic-error.ts";
import { unexplainedErrors } from "./unexplained-error.ts";
import { predictedTimes, predictingCandidate } from "./prediction.ts";

export interface RolloutQuestion {
  readonly setting: Setting;
  readonly control: Candidate;
  readonly other: Candidate;
  /** To compare, on traffic that lasts so long. */
  readonly designs: (spanMicros: Micros) => readonly NamedDesign[];
  /** Simulated rollouts of each design, each with its own draw of arms; as many as take about a minute where left out. */
  readonly runs?: number | undefined;
  /** Probability to find the difference, and the one to find one where there is none, at any look. */
  readonly power: number;
  readonly level: number;
  /** What the rollout is to find. */
  readonly figure: PlannedFigureKey;
  /** Durations that detectable differences are stated for. */
  readonly hours: readonly number[];
  /** Limits that take a rollout back, which some of the recommended design are simulated with. */
  readonly guardrails?: readonly Guardrail[];
  /** What happened to the workload's requests, in its order, where the control routed them. */
  readonly observed?: readonly Observed[] | undefined;
  readonly threadsMax?: number;
  readonly progress?: (done: number, all: number) => void;
  readonly keeping?: WorkKeeping;
}

/** The whole fleet by one profile: times of the requests that are compared, microseconds. */
export interface ArmTruth extends PerMetric<Distribution | undefined> {
  /** Session completion times of the sessions that began meanwhile; undefined where none was answered whole. */
  readonly sessions: Distribution | undefined;
}

export interface RolloutStudy {
  readonly control: string;
  readonly other: string;
  readonly requests: number;
  readonly spanMicros: Micros;
  /** The beginning, in which caches fill and the control routes everything. */
  readonly startMicros: Micros;
  readonly runs: number;
  readonly power: number;
  readonly level: number;
  readonly figure: PlannedFigureKey;
  readonly hours: readonly number[];
  readonly truth: { readonly control: ArmTruth; readonly other: ArmTruth };
  readonly designs: readonly DesignStudy[];
  readonly recommendation: Recommendation;
  /**
   * Of rollouts of the recommended design with the guardrails, those that were taken back; undefined without
   * guardrails.
   */
  readonly guarded?: { readonly guardrails: readonly Guardrail[]; readonly runs: number; readonly takenBack: number };
  /** What the difference owes to the traffic, by figure; absent where the trace is too short for it. */
  readonly traffic: TrafficErrors;
  /**
   * What one rollout of the recommended design is predicted to show in the end, with a probability of 90 %: after the hours
   * that it takes to find it, or the first that were asked about where none are enough.
   */
  readonly shown: ShownIntervals;
}

/**
 * Requests that all rollouts simulate together, unless more are asked for: half a minute on two cores that have nothing
 * else to do.
 */
const REQUESTS_AFFORDED = 1_000_000;
/** Fewer show little of what chance does; more narrow it by little. */
const RUNS_MIN = 3;
const RUNS_MAX = 40;
/** Where all are compared; which of them a trace has is known once it was simulated. */
const DESIGNS_ABOUT = 8;
/** Of the trace: until then caches fill, and nothing is compared. */
const START_SHARE = 0.1;
/** Rollouts that are simulated with guardrails. */
const GUARDED_RUNS = 8;
/** Drawn engines that the recommended design is simulated on, where a calibration states how far it may be off. */
const REPLICAS = 10;

/** Requests that all simulations together have, about. */
function workOf({ setting, runs = RUNS_MAX }: RolloutQuestion): number {
  return setting.workload.length * (3 + runs * DESIGNS_ABOUT);
}

/** Simulates each design as it would run, and the truth beside it. Same question, same answer, on any number of threads. */
export async function rolloutStudy(question: RolloutQuestion): Promise<RolloutStudy> {
  const { setting, control, other, figure, level, power, hours, observed, guardrails = [] } = question;
  const requests = setting.workload.length;
  const { threadsMax = availableParallelism(), keeping } = question;
  const pool = new JobPool(setting, { work: workOf(question), threadsMax, keeping });
  let done = 0;
  let simulations = 3;
  const counted = <T>(result: T): T => {
    question.progress?.(++done, simulations);
    return result;
  };
  try {
    const outcome = (candidate: Candidate) => pool.run({ kind: "outcome", candidate }).then(counted);
    const [ofControl, ofOther, predicting] = await Promise.all([
      outcome(control),
      outcome(other),
      outcome(predictingCandidate(setting, control)),
    ]);
    // Of conversations the first turns alone have a time of their own: how long all takes is known when it has been run.
    const spanMicros = ofControl.arrivalMicros.reduce((last, at) => (at > last ? at : last), 0);
    const startMicros = Math.round(START_SHARE * spanMicros);
    const designs = question.designs(spanMicros);
    const runs = question.runs ?? affordableRuns(requests, designs.length);
    const replicas = setting.residuals === undefined ? 0 : REPLICAS;
    const guardedRuns = guardrails.length === 0 ? 0 : Math.min(runs, GUARDED_RUNS);
    simulations += runs * designs.length + guardedRuns + 2 * replicas;
    const traffic = trafficErrors([ofControl, ofOther], startMicros);
    const predicted = predictedTimes(predicting);
    const arms = [control, other] as const;
    const asked: PowerQuestion = { level, primary: figure, power, hours };
    type More = Partial<Pick<SimulatedRollout, "guardrails" | "replica">>;
    const simulated = (design: Design, run: number, more: More = {}) => {
      const rollout = { arms, design, seed: setting.seed + 1 + run, replica: 0, startMicros, predicted, ...more };
      return pool.run({ kind: "rollout", rollout }).then(counted);
    };
    const studies = await Promise.all(
      designs.map(async (named): Promise<DesignStudy> => {
        const { design } = named;
        const samples = await each(runs, (run) => simulated(design, run));
        const unexplained =
          observed && unexplainedErrors(design, setting, { simulated: ofControl, observed }, startMicros);
        const truth = rolloutTruth([ofControl, ofOther], design, startMicros);
        return designStudy(named, truth, samples, spanMicros - startMicros, asked, { unexplained, traffic });
      }),
    );
    const truth = truthOf(setting, [ofControl, ofOther], startMicros);
    const recommendation = recommended(studies, figure, (key) => controlFigure(truth.control, key));
    const chosen = studies.find(({ name }) => name === recommendation.design)!;
    const again = (run: number, more?: More) => simulated(chosen.design, run, more);
    const guarded = await each(guardedRuns, (run) => again(run, { guardrails }));
    const takenBack = guarded.filter((sample) => sample.takenBack).length;
    const pairs = await each(replicas, async (run): Promise<RolloutPair> => {
      return { fitted: await again(run), drawn: await again(run, { replica: run + 1 }) };
    });
    return {
      ...statedOf(question),
      requests,
      spanMicros,
      startMicros,
      runs,
      truth,
      designs: studies,
      recommendation,
      ...(guardedRuns > 0 && { guarded: { guardrails, runs: guardedRuns, takenBack } }),
      traffic,
      shown: shownIntervals(chosen, pairs, traffic, recommendation.hours ?? hours[0] ?? 1),
    };
  } finally {
    await pool.close();
  }
}

function statedOf({ control, other, power, level, figure, hours }: RolloutQuestion) {
  return { control: control.name, other: other.name, power, level, figure, hours };
}

function each<T>(count: number, of: (i: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, i) => of(i)));
}

function affordableRuns(requests: number, designs: number): number {
  return Math.min(RUNS_MAX, Math.max(RUNS_MIN, Math.floor(REQUESTS_AFFORDED / (requests * designs))));
}

/** What an arm's figure is on the whole fleet; NaN where no request has it. */
export function controlFigure(truth: ArmTruth, key: PlannedFigureKey): number {
  const [metric, figure] = key.split(".") as ["ttft" | "tpot" | "e2e", "mean" | "p99"];
  return truth[`${metric}Micros`]?.[figure] ?? NaN;
}

function truthOf(
  setting: Setting,
  [control, other]: readonly [CandidateOutcome, CandidateOutcome],
  startMicros: Micros,
): RolloutStudy["truth"] {
  return { control: armTruth(setting, control, startMicros), other: armTruth(setting, other, startMicros) };
}

function armTruth({ workload }: Setting, outcome: CandidateOutcome, startMicros: Micros): ArmTruth {
  const compared = (column: Float64Array) =>
    figuresOf(column.filter((_, row) => outcome.arrivalMicros[row]! >= startMicros));
  return {
    ...perMetric((metric) => compared(outcome[metric])),
    sessions: compared(sessionLosses(workload, outcome)),
  };
}
