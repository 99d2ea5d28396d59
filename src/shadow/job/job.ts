import { type Backlog, backlogOf } from "../figure/backlog.ts";
import type { Distribution } from "#sim/result/distribution.ts";
import {
  type Candidate,
  type CandidateOutcome,
  type Setting,
  noiseSeedOf,
  runCandidate,
  settingOf,
} from "../candidate/candidate.ts";
import { figuresOf } from "../figure/figures.ts";
import { withFirstTokenNoise } from "../candidate/first-token-noise.ts";
import { type PerMetric, perMetric } from "../figure/metric.ts";
import { type RankingSums, blockSumsOf } from "./ranking.ts";
import { type DecisionRegret, decisionRegret, type RegretQuestion } from "./regret.ts";
import type { RolloutSample } from "./rollout-sample.ts";
import { type SimulatedRollout, simulatedRollout } from "./simulated-rollout.ts";
import { runTrial, type Trial, type TrialResult } from "./trial.ts";

/** One piece of a question that can be done anywhere. Plain data. */
export type Job =
  /** The engine as it was fitted, every request. */
  | { readonly kind: "outcome"; readonly candidate: Candidate }
  /** The engine as it may be: figures alone. */
  | { readonly kind: "replica"; readonly candidate: Candidate; readonly replica: number }
  /** One counterfactual decision. */
  | { readonly kind: "regret"; readonly question: RegretQuestion }
  /** Two candidates as arms of a rollout. */
  | { readonly kind: "rollout"; readonly rollout: SimulatedRollout }
  /** What each request loses under a candidate, perhaps on the first of them alone. */
  | { readonly kind: "trial"; readonly trial: Trial };

/** What is kept of a run on a drawn engine. */
export interface ReplicaFigures {
  readonly figures: PerMetric<Distribution | undefined>;
  readonly e2e: RankingSums;
  readonly backlog: Backlog | undefined;
}

export interface JobResults {
  readonly outcome: CandidateOutcome;
  readonly replica: ReplicaFigures;
  readonly regret: DecisionRegret | undefined;
  readonly rollout: RolloutSample;
  readonly trial: TrialResult;
}

/** Does a job. Same setting and job, same result, in any thread. */
export function perform(setting: Setting, job: Job): JobResults[Job["kind"]] {
  switch (job.kind) {
    case "outcome":
      return runCandidate(setting, job.candidate);
    case "replica": {
      const drawn = runCandidate(setting, job.candidate, { replica: job.replica });
      const { firstTokens, betweenRuns } = settingOf(setting, job.candidate.scenario).residuals ?? {};
      const outcome =
        firstTokens === undefined
          ? drawn
          : withFirstTokenNoise(drawn, firstTokens, noiseSeedOf(setting), job.replica, betweenRuns?.noise);
      return {
        figures: perMetric((metric) => figuresOf(outcome[metric])),
        e2e: blockSumsOf(outcome.e2eMicros),
        backlog: backlogOf(outcome.arrivalMicros, outcome.ttftMicros, outcome.e2eMicros),
      };
    }
    case "regret":
      return decisionRegret(setting, job.question);
    case "rollout":
      return simulatedRollout(setting, job.rollout);
    case "trial":
      return runTrial(setting, job.trial);
  }
}
