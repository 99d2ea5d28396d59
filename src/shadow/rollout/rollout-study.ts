import { availableParallelism } from "node:os";
import type { Micros } from "#core/units.ts";
import type { Distribution } from "#sim/result/distribution.ts";
import { type Candidate, type CandidateOutcome, type Setting } from "../question/candidate.ts";
import { figuresOf } from "../question/figures.ts";
import { JobPool } from "../question/job-pool.ts";
import { type PerMetric, perMetric } from "../question/metric.ts";
import { normalQuantile } from "../question/normal-quantile.ts";
import { type DesignStudy, designStudy, type PowerQuestion } from "./design-study.ts";
import { type Recommendation, recommended } from "./recommendation.ts";
import type { NamedDesign } from "./rollout-design.ts";
import { type ShownIntervals, shownIntervals } from "./shown-interval.ts";
import type { FigureKey } from "./rollout-sample.ts";
import { rolloutTruth } from "./rollout-truth.ts";
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
  readonly figure: FigureKey;
  /** Durations that detectable differences are stated for. */
  readonly hours: readonly number[];
  readonly threadsMax?: number;
  readonly progress?: (done: number, all: number) => void;
}

/** The whole fleet by one profile: times of the requests that are compared, microseconds. */
export type ArmTruth = PerMetric<Distribution | undefined>;

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
  readonly figure: FigureKey;
  readonly hours: readonly number[];
  readonly truth: { readonly control: ArmTruth; readonly other: ArmTruth };
  readonly designs: readonly DesignStudy[];
  readonly recommendation: Recommendation;
  /** What the recommended design is predicted to show in the end, with a probability of 90 %. */
  readonly shown: ShownIntervals;
}

/** Requests that all rollouts simulate together, unless more are asked for: half a minute on two cores that have nothing else to do. */
const REQUESTS_AFFORDED = 1_000_000;
/** Fewer show little of what chance does; more narrow it by little. */
const RUNS_MIN = 3;
const RUNS_MAX = 40;
/** Of the trace: until then caches fill, and nothing is compared. */
const START_SHARE = 0.1;
/** Drawn engines that the true difference is simulated on, where a calibration states how far it may be off. */
const REPLICAS = 10;

/** Simulates each design as it would run, and the truth beside it. Same question, same answer, on any number of threads. */
export async function rolloutStudy(question: RolloutQuestion): Promise<RolloutStudy> {
  const { setting, control, other, figure, level, power, hours } = question;
  const requests = setting.workload.length;
  const pool = new JobPool(setting, REQUESTS_AFFORDED, question.threadsMax ?? availableParallelism());
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
    simulations += runs * designs.length + 2 * replicas;
    const predicted = predictedTimes(predicting);
    const arms = [control, other] as const;
    const asked: PowerQuestion = { level, standardErrors: normalQuantile(power), hours };
    const studies = await Promise.all(
      designs.map(async (named): Promise<DesignStudy> => {
        const { design } = named;
        const samples = await Promise.all(
          Array.from({ length: runs }, (_, run) => {
            const rollout = { arms, design, seed: setting.seed + 1 + run, replica: 0, startMicros, predicted };
            return pool.run({ kind: "rollout", rollout }).then(counted);
          }),
        );
        const truth = rolloutTruth([ofControl, ofOther], design, startMicros);
        return designStudy(named, truth, samples, spanMicros - startMicros, asked);
      }),
    );
    const truth = { control: armTruth(ofControl, startMicros), other: armTruth(ofOther, startMicros) };
    const recommendation = recommended(studies, figure, (key) => controlFigure(truth.control, key));
    const drawn = (candidate: Candidate) =>
      Promise.all(
        Array.from({ length: replicas }, (_, i) =>
          pool.run({ kind: "replica", candidate, replica: i + 1 }).then(counted),
        ),
      );
    const chosen = studies.find(({ name }) => name === recommendation.design)!;
    return {
      control: control.name,
      other: other.name,
      requests,
      spanMicros,
      startMicros,
      runs,
      power,
      level,
      figure,
      hours,
      truth,
      designs: studies,
      recommendation,
      shown: shownIntervals(chosen, await drawn(control), await drawn(other)),
    };
  } finally {
    await pool.close();
  }
}

function affordableRuns(requests: number, designs: number): number {
  return Math.min(RUNS_MAX, Math.max(RUNS_MIN, Math.floor(REQUESTS_AFFORDED / (requests * designs))));
}

/** What an arm's figure is on the whole fleet; NaN where no request has it. */
export function controlFigure(truth: ArmTruth, key: FigureKey): number {
  const [metric, figure] = key.split(".") as ["ttft" | "tpot" | "e2e", "mean" | "p99"];
  return truth[`${metric}Micros`]?.[figure] ?? NaN;
}

function armTruth(outcome: CandidateOutcome, startMicros: Micros): ArmTruth {
  return perMetric((metric) =>
    figuresOf(outcome[metric].filter((_, row) => outcome.arrivalMicros[row]! >= startMicros)),
  );
}
