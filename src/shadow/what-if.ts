import { availableParallelism } from "node:os";
import { Piscina } from "piscina";
import type { Distribution } from "#sim/result/distribution.ts";
import { type Candidate, type CandidateOutcome, type Setting, runCandidate } from "./candidate.ts";
import { figuresOf, type PredictionError, predictionError } from "./figures.ts";
import { type PairedDifference, pairedDifference } from "./paired.ts";
import type { Observed } from "./recorded-run.ts";

const METRICS = ["ttftMicros", "tpotMicros", "e2eMicros"] as const;
export type Metric = (typeof METRICS)[number];
export type PerMetric<T> = Readonly<Record<Metric, T>>;

/** Below so many simulated requests threads cost more than they save. */
const REQUESTS_PER_THREAD_MIN = 5_000;

export interface CandidateAnswer {
  readonly name: string;
  readonly completed: number;
  readonly predicted: PerMetric<Distribution | undefined>;
  /** Prompt tokens found in the engines' caches over all prompt tokens. */
  readonly hitRatio: number;
  readonly imbalance: number;
  /** Against the profile in force, both simulated, request by request. */
  readonly difference: PerMetric<PairedDifference | undefined>;
  /** Share of requests that went to the same endpoint as under the profile in force. */
  readonly agreement: number;
}

export interface WhatIfAnswer {
  readonly inForce: string;
  readonly requests: number;
  /** The profile in force, simulated, against what really happened; undefined where nothing was observed. */
  readonly modelError: PerMetric<PredictionError | undefined> | undefined;
  /** By mean E2E, best first; the profile in force is among them. */
  readonly candidates: readonly CandidateAnswer[];
}

export interface WhatIfQuestion {
  readonly setting: Setting;
  readonly inForce: Candidate;
  readonly candidates: readonly Candidate[];
  /** In the workload's order; undefined for a workload that was never run. */
  readonly observed: readonly Observed[] | undefined;
  /** Threads at most; 1 stays in this one. All cores where it is left out. */
  readonly threadsMax?: number;
  readonly progress?: (done: number, all: number) => void;
  /** Gets every candidate's requests, that in force first; they are too large for an answer. */
  readonly onOutcomes?: (outcomes: readonly CandidateOutcome[]) => void;
}

/** What other policies would have done with the same traffic. Same question, same answer, on any number of threads. */
export async function whatIf(question: WhatIfQuestion): Promise<WhatIfAnswer> {
  const { setting, inForce, observed } = question;
  const others = question.candidates.filter(({ name }) => name !== inForce.name);
  const all = [inForce, ...others];
  const outcomes = await runAll(setting, all, question.threadsMax ?? availableParallelism(), question.progress);
  question.onOutcomes?.(outcomes);
  const base = outcomes[0]!;
  const answers = outcomes.map((outcome) => answerOf(setting, outcome, base));
  return {
    inForce: inForce.name,
    requests: setting.workload.length,
    modelError: observed === undefined ? undefined : modelErrorOf(base, observed),
    candidates: answers.sort(
      (a, b) => (a.predicted.e2eMicros?.mean ?? Infinity) - (b.predicted.e2eMicros?.mean ?? Infinity),
    ),
  };
}

async function runAll(
  setting: Setting,
  candidates: readonly Candidate[],
  threadsMax: number,
  progress: WhatIfQuestion["progress"],
): Promise<CandidateOutcome[]> {
  let done = 0;
  const told = <T>(outcome: T): T => {
    progress?.(++done, candidates.length);
    return outcome;
  };
  const work = setting.workload.length * candidates.length;
  const threads = Math.min(candidates.length, threadsMax, Math.floor(work / REQUESTS_PER_THREAD_MIN));
  if (threads < 2) return candidates.map((candidate) => told(runCandidate(setting, candidate)));
  const pool = new Piscina<Candidate, CandidateOutcome>({
    filename: new URL("./candidate.worker.ts", import.meta.url).href,
    workerData: { setting },
    minThreads: threads,
    maxThreads: threads,
  });
  try {
    return await Promise.all(candidates.map(async (candidate) => told(await pool.run(candidate))));
  } finally {
    await pool.destroy();
  }
}

function answerOf({ workload, seed }: Setting, outcome: CandidateOutcome, base: CandidateOutcome): CandidateAnswer {
  let cached = 0;
  let prompt = 0;
  let same = 0;
  workload.forEach(({ promptTokens }, i) => {
    if (Number.isNaN(outcome.cachedTokens[i]!)) return;
    cached += outcome.cachedTokens[i]!;
    prompt += promptTokens;
    if (outcome.endpoint[i] === base.endpoint[i]) same++;
  });
  return {
    name: outcome.name,
    completed: outcome.completed,
    predicted: perMetric((metric) => figuresOf(outcome[metric])),
    hitRatio: prompt === 0 ? 0 : cached / prompt,
    imbalance: outcome.imbalance,
    difference: perMetric((metric) => pairedDifference(outcome[metric], base[metric], seed)),
    agreement: outcome.completed === 0 ? 0 : same / outcome.completed,
  };
}

/** Only requests that were answered whole can be compared. */
function modelErrorOf(base: CandidateOutcome, observed: readonly Observed[]): PerMetric<PredictionError | undefined> {
  const column = (value: (one: Observed) => number) =>
    Float64Array.from(observed, (one) => (one.ok ? value(one) : NaN));
  const seen: PerMetric<Float64Array> = {
    ttftMicros: column((one) => one.ttftMicros),
    tpotMicros: column((one) =>
      one.outputTokens > 1 ? (one.e2eMicros - one.ttftMicros) / (one.outputTokens - 1) : NaN,
    ),
    e2eMicros: column((one) => one.e2eMicros),
  };
  return perMetric((metric) => predictionError(base[metric], seen[metric]));
}

function perMetric<T>(make: (metric: Metric) => T): PerMetric<T> {
  return { ttftMicros: make("ttftMicros"), tpotMicros: make("tpotMicros"), e2eMicros: make("e2eMicros") };
}
