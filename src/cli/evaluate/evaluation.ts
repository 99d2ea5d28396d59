import type { Candidate, CandidateOutcome, Setting } from "#shadow/candidate/candidate.ts";
import { runCandidate } from "#shadow/candidate/candidate.ts";
import { replicaHoursOf } from "#shadow/candidate/cost.ts";
import { figuresOf } from "#shadow/figure/figures.ts";
import { clustersOf } from "#shadow/job/clusters.ts";
import { type GainParts, gainParts } from "#shadow/tune/gain-parts.ts";
import {
  gainBetween,
  isShare,
  lossesOf,
  lossOf,
  type Losses,
  type Objective,
  unansweredFactor,
} from "#shadow/job/objective.ts";

/** What one simulation of a policy came to. Plain data. */
export interface Evaluation {
  readonly loss: number;
  readonly completed: number;
  /** Under the profile in force, and of how many. */
  readonly completedBefore: number;
  readonly requests: number;
  readonly promptTokensMean: number;
  readonly imbalance: number;
  readonly requestsPerSecond: number;
  /** Hours of all endpoints until the last request was over, and those under the profile in force. */
  readonly replicaHours: number;
  readonly replicaHoursBefore: number;
  /** Against the profile in force, on the same requests. */
  readonly gain: number;
  /** Of the requests that both answered. */
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

function promptTokensMean({ workload }: Setting): number {
  let sum = 0;
  for (const { promptTokens } of workload) sum += promptTokens;
  return sum / Math.max(1, workload.length);
}

function answered({ e2eMicros }: CandidateOutcome, row: number): boolean {
  return !Number.isNaN(e2eMicros[row]!);
}

export function evaluate(setting: Setting, { objective, base }: Ground, candidate: Candidate): Evaluation {
  const outcome = runCandidate(setting, candidate);
  const own = (one: CandidateOutcome): Losses => lossesOf(objective, setting.workload, one);
  const losses = { before: own(base), after: own(outcome) };
  const requests = setting.workload.length;
  const both = Uint8Array.from(losses.after, (_, row) => Number(answered(base, row) && answered(outcome, row)));
  // Of times, those of the same requests: few that are answered among many that are refused are answered at once.
  const rows = (one: Losses): Losses => (isShare(objective) ? one : one.filter((_, row) => both[row] === 1));
  const lossIn = (one: CandidateOutcome, own: Losses): number =>
    lossOf(objective, rows(own)) * unansweredFactor(objective, one.completed / Math.max(1, requests));
  const [before, after] = [lossIn(base, losses.before), lossIn(outcome, losses.after)];
  return {
    loss: after,
    completed: outcome.completed,
    completedBefore: base.completed,
    requests,
    promptTokensMean: promptTokensMean(setting),
    imbalance: outcome.imbalance,
    requestsPerSecond: outcome.completed / Math.max(1e-6, outcome.endedMicros / 1e6),
    replicaHours: replicaHoursOf(outcome, candidate.scenario?.endpoints?.length ?? setting.endpoints.length),
    replicaHoursBefore: replicaHoursOf(base, setting.endpoints.length),
    gain: both.includes(1) || isShare(objective) ? gainBetween(objective, before, after) : -Number.MAX_VALUE,
    parts: gainParts({
      workload: setting.workload,
      clusters: clustersOf(setting.workload),
      counts: both,
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
