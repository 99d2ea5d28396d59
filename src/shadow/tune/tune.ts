import { type HeldOut, type TuneVerdict, verdictOf, type Winner } from "./verdict.ts";
import { availableParallelism } from "node:os";
import type { Candidate, CandidateOutcome, Setting } from "../candidate/candidate.ts";
import { JobPool } from "../job/job-pool.ts";
import type { WorkKeeping } from "../job/result-memory.ts";
import { modelCheck } from "../candidate/model-check.ts";
import type { Observed } from "../recorded/observed.ts";
import { type Clusters, clustersOf } from "../job/clusters.ts";
import { doubtedResiduals, type EngineDoubt, engineDoubt, modelRefusal } from "./engine-doubt.ts";
import { gainParts } from "./gain-parts.ts";
import { type Gain, gainOf, type PairedLosses, signChance, unitDifferences, type Units } from "./gain.ts";
import { lossesOf, lossOf, type Losses, type Objective } from "../job/objective.ts";
import type { PolicySpace } from "./policy-space.ts";
import { type Found, Search, type SearchResult, type TrialMemory } from "./search.ts";
import { type SplitTrace, splitTrace } from "./split-trace.ts";
import { sessionUnits, timeUnits } from "./time-units.ts";

export interface TuneQuestion {
  readonly setting: Setting;
  readonly inForce: Candidate;
  /** Policies to begin with. */
  readonly bases: readonly Candidate[];
  readonly space: PolicySpace;
  readonly objective: Objective;
  /** In the workload's order; undefined for a workload that was never run. */
  readonly observed: readonly Observed[] | undefined;
  /** Part of the conversations that the search sees, in (0, 1). */
  readonly share: number;
  /**
   * Simulations of the search at most, one of a part of the traffic counting as that part; and the time that it may
   * take.
   */
  readonly trialsMax: number;
  readonly budgetMillis: number;
  /** Drawn engines that the result is judged on. */
  readonly replicas: number;
  /** A smaller gain is none: part of the loss in force, or of all requests for goodput. */
  readonly gainMin: number;
  readonly memory: TrialMemory;
  /** Milliseconds from any start. */
  readonly now: () => number;
  readonly threadsMax?: number;
  /** With the best policy so far of all that were looked at on the whole of the searched part. */
  readonly progress?: (trials: number, best: Found | undefined) => void;
  /** Awaited after each simulation in this thread, so that a host can let it rest. */
  readonly pause?: () => Promise<void>;
  readonly keeping?: WorkKeeping;
}

export interface TuneAnswer {
  readonly verdict: TuneVerdict;
  readonly inForce: string;
  readonly objective: Objective;
  readonly requests: number;
  readonly split: Omit<SplitTrace, "search" | "heldOut">;
  readonly doubt: EngineDoubt;
  readonly search: Omit<SearchResult, "finalists"> | undefined;
  /** The best policy of the search; undefined where it was refused or found none. */
  readonly winner: Winner | undefined;
  /** What it does with the conversations that the search did not see. */
  readonly heldOut: HeldOut | undefined;
}

/**
 * Searches a policy for the first conversations of a trace, and judges it on the others, which the search never saw. Same
 * question with the same trials, same answer, on any number of threads; a budget of time may end it sooner.
 */
export async function tune(question: TuneQuestion): Promise<TuneAnswer> {
  const { setting: given, inForce, objective, share } = question;
  const clusters = clustersOf(given.workload);
  const split = splitTrace(given.workload, clusters, share);
  const threads = question.threadsMax ?? availableParallelism();
  const checking = poolFor(given, question, threads, 1);
  const { search: searched, heldOut: _rows, ...sizes } = split;
  const answer = { inForce: inForce.name, objective, requests: given.workload.length, split: sizes };
  let doubt: EngineDoubt;
  try {
    doubt = await doubtOf(question, checking);
  } finally {
    await checking.close();
  }
  const refusal = [...tooShort(split), ...(modelRefusal(doubt) === undefined ? [] : [modelRefusal(doubt)!])];
  if (refusal.length > 0) {
    const verdict: TuneVerdict = { kind: "refused", reasons: refusal };
    return { ...answer, verdict, doubt, search: undefined, winner: undefined, heldOut: undefined };
  }
  const setting = { ...given, residuals: doubtedResiduals(given.residuals, doubt) };
  const { finalists, ...search } = await searchIn({ ...setting, workload: searched }, question, split, threads);
  const winner = search.winner;
  const heldOut = winner && (await judged({ ...question, setting }, winner.candidate, { clusters, split, threads }));
  const { winner: _found, ...result } = search;
  const verdict = verdictOf({ ...question, search: result, finalists, winner, heldOut });
  return { ...answer, verdict, doubt, search: result, winner, heldOut };
}

/** Fewer conversations on either side show nothing about others. */
const SESSIONS_MIN = 8;
const REQUESTS_MIN = 100;

function tooShort({ searchSessions, heldOutSessions, heldOutRequests, search }: SplitTrace): string[] {
  const problems: string[] = [];
  const few = Math.min(searchSessions, heldOutSessions);
  if (few < SESSIONS_MIN)
    problems.push(
      `the trace is too short: ${searchSessions} conversations to search on and ${heldOutSessions} to judge by, at least ` +
        `${SESSIONS_MIN} are needed of each`,
    );
  if (Math.min(search.length, heldOutRequests) < REQUESTS_MIN)
    problems.push(
      `the trace is too short: ${search.length} requests to search on and ${heldOutRequests} to judge by, at least ` +
        `${REQUESTS_MIN} are needed of each`,
    );
  return problems;
}

async function doubtOf({ setting, inForce, observed }: TuneQuestion, pool: JobPool): Promise<EngineDoubt> {
  if (observed === undefined) return engineDoubt(setting.residuals, undefined);
  const outcome = await pool.run({ kind: "outcome", candidate: inForce });
  return engineDoubt(setting.residuals, modelCheck(outcome, observed).error.e2eMicros);
}

/** A search, and the best of it as the last comparison on the searched part has it. */
async function searchIn(setting: Setting, question: TuneQuestion, split: SplitTrace, threads: number) {
  const { inForce, objective, memory, progress, now, budgetMillis } = question;
  const pool = poolFor(setting, question, threads, question.trialsMax + FINALISTS_ABOUT * LAST_REPLICAS.length);
  const endsAt = now() + budgetMillis;
  try {
    const search = new Search(pool, {
      ...question,
      seed: setting.seed,
      isWhole: split.isRepeated,
      parallel: 2 * threads,
      millisLeft: () => endsAt - now(),
      memory,
      ...(progress && { progress }),
    });
    const result = await search.run();
    const winner = await bestOf(result, { pool, setting, inForce, objective });
    return { ...result, winner };
  } finally {
    await pool.close();
  }
}

interface LastLook {
  readonly pool: JobPool;
  readonly setting: Setting;
  readonly inForce: Candidate;
  readonly objective: Objective;
}

/** Drawn engines of the last comparison on the searched part; others than those of the search itself. */
const LAST_REPLICAS: readonly number[] = [3, 4, 5, 6];
const FINALISTS_ABOUT = 4;

async function bestOf({ finalists, policies }: SearchResult, look: LastLook): Promise<Winner | undefined> {
  if (finalists.length === 0) return undefined;
  const { pool, setting, inForce, objective } = look;
  const trials = (candidate: Candidate) =>
    Promise.all(
      LAST_REPLICAS.map(async (replica) => {
        const trial = { candidate, objective, share: 1, replica };
        return (await pool.run({ kind: "trial", trial })).losses;
      }),
    );
  const [base, ...others] = await Promise.all([inForce, ...finalists.map(({ candidate }) => candidate)].map(trials));
  const pairs = others.map((one) => one.map((after, r): PairedLosses => ({ before: base![r]!, after })));
  const clusters = clustersOf(setting.workload);
  const rows = new Uint8Array(setting.workload.length).fill(1);
  const units = sessionUnits(clusters.ofRow, rows, clusters.startMicros.length);
  const gains = pairs.map((one) => gainOf(objective, one, units, setting.seed)?.value ?? -Infinity);
  const best = gains.indexOf(Math.max(...gains));
  const differences = pairs.map((one) => unitDifferences(one, units));
  const alone = signChance([differences[best]!], setting.seed)[0]!;
  return {
    ...finalists[best]!,
    gain: gains[best]!,
    chanceOfBest: signChance(differences, setting.seed)[best]!,
    chanceOfAll: Math.min(1, policies * alone),
  };
}

interface Judging {
  readonly clusters: Clusters;
  readonly split: SplitTrace;
  readonly threads: number;
}

/** The whole trace is simulated, so that caches and queues are as full as they are; only what was held out counts. */
async function judged(question: TuneQuestion, winner: Candidate, of: Judging): Promise<HeldOut | undefined> {
  const { setting, inForce, objective, replicas } = question;
  const { clusters, split } = of;
  const pool = poolFor(setting, question, of.threads, 2 * (1 + replicas));
  try {
    const outcomes = [inForce, winner].map((candidate) => pool.run({ kind: "outcome", candidate }));
    const [before, after] = (await Promise.all(outcomes)) as [CandidateOutcome, CandidateOutcome];
    const own = (outcome: CandidateOutcome) => lossesOf(objective, setting.workload, outcome);
    const fitted: PairedLosses = { before: own(before), after: own(after) };
    const drawn = await Promise.all(
      Array.from({ length: replicas }, async (_, i): Promise<PairedLosses> => {
        const trial = { objective, share: 1, replica: i + 1 };
        const [one, other] = await Promise.all(
          [inForce, winner].map((candidate) => pool.run({ kind: "trial", trial: { ...trial, candidate } })),
        );
        return { before: one!.losses, after: other!.losses };
      }),
    );
    const pairs = [fitted, ...drawn];
    const sessions = sessionUnits(clusters.ofRow, split.heldOut, clusters.startMicros.length);
    const stretches = timeUnits(before.arrivalMicros, split.heldOut);
    const bySessions = gainOf(objective, pairs, sessions, setting.seed);
    const byTime = gainOf(objective, pairs, stretches, setting.seed);
    if (bySessions === undefined || byTime === undefined) return undefined;
    const of = (losses: Losses) =>
      lossOf(
        objective,
        losses.filter((_, row) => split.heldOut[row] === 1),
      );
    const endpoints = setting.endpoints.map(({ id }) => id);
    const compared = { workload: setting.workload, clusters, counts: split.heldOut, endpoints, before, after };
    return {
      gain: widest(bySessions, byTime),
      bySessions,
      byTime,
      before: of(fitted.before),
      after: of(fitted.after),
      replicas: pairs.slice(1).map((pair) => gainOn(objective, pair, sessions, setting.seed)),
      unanswered: {
        before: unanswered(
          pairs.map((pair) => pair.before),
          split.heldOut,
        ),
        after: unanswered(
          pairs.map((pair) => pair.after),
          split.heldOut,
        ),
      },
      parts: gainParts({ ...compared, losses: fitted }),
    };
  } finally {
    await pool.close();
  }
}

/** Rows that count and have no loss: of times, those without an answer. */
function unanswered(losses: readonly Losses[], counts: Uint8Array): number {
  let sum = 0;
  for (const one of losses)
    for (let row = 0; row < one.length; row++) if (counts[row] === 1 && Number.isNaN(one[row])) sum++;
  return sum;
}

function gainOn(objective: Objective, pair: PairedLosses, units: Units, seed: number): number {
  return gainOf(objective, [pair], units, seed)?.value ?? 0;
}

/** The lowest and the highest end, and the larger chance. */
function widest(a: Gain, b: Gain): Gain {
  return {
    ...a,
    low: Math.min(a.low, b.low),
    high: Math.max(a.high, b.high),
    chance: Math.max(a.chance, b.chance),
    units: Math.min(a.units, b.units),
  };
}

/** For about so many simulations of the whole traffic. */
function poolFor(setting: Setting, { pause, keeping }: TuneQuestion, threadsMax: number, simulations: number): JobPool {
  const work = setting.workload.length * simulations;
  return new JobPool(setting, { work, threadsMax, pause, keeping });
}
