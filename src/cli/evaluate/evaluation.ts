import type { Candidate, CandidateOutcome, Setting } from "#shadow/question/candidate.ts";
import { runCandidate } from "#shadow/question/candidate.ts";
import { replicaHoursOf } from "#shadow/question/cost.ts";
import { figuresOf } from "#shadow/question/figures.ts";
import { clustersOf } from "#shadow/tune/clusters.ts";
import { type GainParts, gainParts } from "#shadow/tune/gain-parts.ts";
import { gainBetween, isShare, lossesOf, lossOf, type Losses, type Objective } from "#shadow/tune/objective.ts";

/** What one simulation of a policy came to. Plain data. */
export interface Evaluation {
  readonly loss: number;
  readonly completed: number;
  readonly imbalance: number;
  readonly requestsPerSecond: number;
  /** Hours of all endpoints until the last request was over, and those under the profile in force. */
  readonly replicaHours: number;
  readonly replicaHoursBefore: number;
  /** Against the profile in force, on the same requests. */
  readonly gain: number;
  readonly parts: GainParts;
  readonly ttftMicros: ReturnType<typeof figuresOf>;
  readonly tpotMicros: ReturnType<typeof figuresOf>;
  readonly e2eMicros: ReturnType<typeof figuresOf>;
}

/** What a policy is compared with: the profile in force, simulated once. Plain data. */
export interface Ground {
  readonly objective: Objective;
  readonly base: CandidateOutcome;
}

/** How much more a loss counts where nobody was answered. */
const UNANSWERED_WEIGHT = 10;

/** A policy must not win by answering less; of shares what was not answered is missed already. */
function unansweredFactor(objective: Objective, { completed }: CandidateOutcome, { workload }: Setting): number {
  if (isShare(objective)) return 1;
  return 1 + UNANSWERED_WEIGHT * (1 - completed / Math.max(1, workload.length));
}

export function evaluate(setting: Setting, { objective, base }: Ground, candidate: Candidate): Evaluation {
  const outcome = runCandidate(setting, candidate);
  const own = (one: CandidateOutcome): Losses => lossesOf(objective, setting.workload, one);
  const losses = { before: own(base), after: own(outcome) };
  const [before, after] = [
    lossOf(objective, losses.before) * unansweredFactor(objective, base, setting),
    lossOf(objective, losses.after) * unansweredFactor(objective, outcome, setting),
  ];
  return {
    loss: after,
    completed: outcome.completed,
    imbalance: outcome.imbalance,
    requestsPerSecond: outcome.completed / Math.max(1e-6, outcome.endedMicros / 1e6),
    replicaHours: replicaHoursOf(outcome, candidate.scenario?.endpoints?.length ?? setting.endpoints.length),
    replicaHoursBefore: replicaHoursOf(base, setting.endpoints.length),
    gain: gainBetween(objective, before, after),
    parts: gainParts({
      workload: setting.workload,
      clusters: clustersOf(setting.workload),
      counts: new Uint8Array(setting.workload.length).fill(1),
      endpoints: setting.endpoints.map(({ id }) => id),
      before: base,
      after: outcome,
      losses,
    }),
    ttftMicros: figuresOf(outcome.ttftMicros),
    tpotMicros: figuresOf(outcome.tpotMicros),
    e2eMicros: figuresOf(outcome.e2eMicros),
  };
}
