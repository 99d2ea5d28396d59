import { nameHash, randomFor } from "#core/base/random.ts";
import type { Candidate } from "../candidate/candidate.ts";
import type { JobPool } from "../job/job-pool.ts";
import { lossOf, type Objective, unansweredFactor } from "../job/objective.ts";
import { policyKey, type PolicySpace, variantOf } from "./policy-space.ts";

/** Results of trials by what they are of, so that a search that was interrupted goes on. */
export interface TrialMemory {
  get(key: string): number | undefined;
  put(key: string, loss: number): void;
}

export interface SearchOptions {
  readonly objective: Objective;
  readonly inForce: Candidate;
  /** To begin with, beside the profile in force. */
  readonly bases: readonly Candidate[];
  readonly space: PolicySpace;
  readonly seed: number;
  /** Requests whose turns wait for one another are not searched on a part: it would be a part of the load. */
  readonly isWhole: boolean;
  /** Simulations at most, of all that is searched on: one of a sixth of it counts a sixth. */
  readonly trialsMax: number;
  /** Trials under way at once, at most. */
  readonly parallel: number;
  /** Time that is left, in milliseconds; asked before each simulation. */
  readonly millisLeft: () => number;
  readonly memory: TrialMemory;
  readonly progress?: ((trials: number, best: Found | undefined) => void) | undefined;
}

/** A policy that was looked at. */
export interface Found {
  readonly candidate: Candidate;
  /** How it came about: "" for one of the bases. */
  readonly origin: string;
  /** On all of the search's part. */
  readonly loss: number;
}

export interface SearchResult {
  /** Best first, the profile in force left out; at most ELITE. */
  readonly finalists: readonly Found[];
  readonly inForceLoss: number;
  /** Different policies that were simulated. */
  readonly policies: number;
  readonly trials: number;
  /** Trials that were known from before. */
  readonly remembered: number;
  /** Whether it ended because nothing better was found for some rounds, and not for want of time. */
  readonly isSettled: boolean;
}

const ELITE = 6;
/** Part of the candidates of a stage that goes on to the next. */
const KEPT = 1 / 3;
const VARIANTS = 12;
/** Rounds without a better one, after which it is taken that there is none. */
const ROUNDS_WITHOUT_MAX = 4;
const ROUNDS_MAX = 200;
/** What counts as better, as part of the loss. */
const BETTER = 0.003;
/**
 * Part of the budget that the policies to begin with may take once each was looked at; the rest is for policies near
 * the best.
 */
const BASES_PART = 2 / 3;
/** Policies that come to the last stage at least, where the budget allows for any. */
const LAST_MIN = 2;

interface Stage {
  readonly share: number;
  /** Drawn engines, the same for all candidates; 0 is the fitted one. */
  readonly replicas: readonly number[];
}

/** Cheap looks for many, dear ones for few (K. Jamieson and A. Talwalkar, 2016). */
const STAGES: readonly Stage[] = [
  { share: 1 / 6, replicas: [0] },
  { share: 1 / 2, replicas: [0] },
  { share: 1, replicas: [0, 1, 2] },
];
const WHOLE_STAGES: readonly Stage[] = [
  { share: 1, replicas: [0] },
  { share: 1, replicas: [0, 1, 2] },
];

/** In simulations of all that is searched on. */
function costOf({ share, replicas }: Stage): number {
  return share * replicas.length;
}

interface Known {
  readonly candidate: Candidate;
  readonly origin: string;
}

/** The same text for the same policy with the same gauges. */
function candidateKey({ spec, gauges }: Candidate): string {
  return gauges === undefined ? policyKey(spec) : `${policyKey(spec)} ${JSON.stringify(gauges)}`;
}

/** Successive halving over the bases, then over rounds of policies near the best ones. */
export class Search {
  readonly #options: SearchOptions;
  readonly #pool: Pick<JobPool, "run">;
  readonly #seen = new Set<string>();
  readonly #simulated = new Set<string>();
  readonly #best: Found[] = [];
  /** Trials of this run, by their keys. */
  readonly #own = new Set<string>();
  #trials = 0;
  /**
   * In simulations of all that is searched on; what was known from before counts too, so that a search goes on as it
   * would have.
   */
  #spent = 0;
  #ownSpent = 0;
  /** The first simulation's begin, as time that was left; undefined before it. */
  #leftAtStart: number | undefined;
  readonly #remembered = new Set<string>();
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(pool: Pick<JobPool, "run">, options: SearchOptions) {
    this.#pool = pool;
    this.#options = options;
  }

  async run(): Promise<SearchResult> {
    const { inForce, bases, space, seed } = this.#options;
    const known = [inForce, ...bases.filter(({ name }) => name !== inForce.name)].map((candidate) => ({
      candidate,
      origin: "",
    }));
    // What all others are compared with is known first, whatever else there is time for.
    const inForceLoss = (await this.#lossAt({ candidate: inForce, origin: "" }, this.#stages.at(-1)!)) ?? Infinity;
    const fresh = known.filter(({ candidate }) => this.#isNew(candidate));
    await this.#round(fresh, BASES_PART * this.#affordable);
    let without = 0;
    let round = 0;
    while (!this.#isOver && without < ROUNDS_WITHOUT_MAX && round < ROUNDS_MAX) {
      const random = randomFor(seed, nameHash("variants") + round++);
      const before = this.#best[0]?.loss ?? Infinity;
      const elite = this.#best.length === 0 ? [inForce] : this.#best.map(({ candidate }) => candidate);
      const variants: Known[] = [];
      for (let i = 0; i < VARIANTS; i++) {
        const one = variantOf(
          elite.map(({ spec }) => spec),
          space,
          random,
        );
        if (one === undefined) continue;
        const { gauges } = elite[one.from]!;
        const candidate = { name: `tuned-${round}-${i + 1}`, spec: one.spec, ...(gauges && { gauges }) };
        if (!this.#isNew(candidate)) continue;
        const parent = this.#best[one.from];
        const from = parent === undefined ? inForce.name : parent.origin === "" ? parent.candidate.name : parent.origin;
        variants.push({ candidate, origin: `${from}; ${one.change}` });
      }
      await this.#round(variants, this.#affordable);
      without = (this.#best[0]?.loss ?? Infinity) < (1 - BETTER) * before ? 0 : without + 1;
    }
    return {
      finalists: this.#best.filter(({ candidate }) => candidate.name !== inForce.name),
      inForceLoss,
      policies: this.#simulated.size,
      trials: this.#trials,
      remembered: this.#remembered.size,
      isSettled: without >= ROUNDS_WITHOUT_MAX,
    };
  }

  get #stages(): readonly Stage[] {
    return this.#options.isWhole ? WHOLE_STAGES : STAGES;
  }

  get #isOver(): boolean {
    return this.#affordable <= 0;
  }

  /** Simulations of all that is searched on that there is still room and, at the pace so far, time for. */
  get #affordable(): number {
    const { trialsMax, millisLeft } = this.#options;
    const left = millisLeft();
    if (left <= 0) return 0;
    const took = (this.#leftAtStart ?? left) - left;
    // Those under way are counted as if they were done, so that the pace is known too well rather than too badly.
    const inTime = took > 0 && this.#ownSpent > 0 ? (left * this.#ownSpent) / took : Infinity;
    return Math.min(trialsMax - this.#spent, inTime);
  }

  #isNew(candidate: Candidate): boolean {
    const key = candidateKey(candidate);
    return !this.#seen.has(key) && this.#seen.add(key).size > 0;
  }

  /** Successive halving: each is looked at once if that can be, and then as many go on as `most` has room for. */
  async #round(candidates: readonly Known[], most: number): Promise<void> {
    const spent = this.#spent;
    let left: readonly Known[] = candidates;
    for (const [at, stage] of this.#stages.entries()) {
      const affordable = this.#affordable;
      const room = at === 0 ? affordable : Math.min(affordable, most - (this.#spent - spent));
      left = left.slice(0, Math.max(LAST_MIN, Math.floor((room - this.#reserved(at + 1)) / costOf(stage))));
      const losses = await Promise.all(left.map((one) => this.#lossAt(one, stage)));
      const ranked = left
        .flatMap((one, i): Found[] => (losses[i] === undefined ? [] : [{ ...one, loss: losses[i] }]))
        .sort((a, b) => a.loss - b.loss || (a.candidate.name < b.candidate.name ? -1 : 1));
      if (at === this.#stages.length - 1) this.#keep(ranked);
      left = ranked.slice(0, Math.max(LAST_MIN, Math.ceil(KEPT * ranked.length)));
    }
  }

  /** What the stages from that one on cost at least. */
  #reserved(from: number): number {
    return this.#stages.slice(from).reduce((sum, stage) => sum + LAST_MIN * costOf(stage), 0);
  }

  #keep(found: readonly Found[]): void {
    this.#best.push(...found.filter(({ loss }) => Number.isFinite(loss)));
    this.#best.sort((a, b) => a.loss - b.loss);
    this.#best.splice(ELITE);
  }

  /** Mean over the stage's engines; undefined where there was no time for it. */
  async #lossAt({ candidate }: Known, { share, replicas }: Stage): Promise<number | undefined> {
    const losses = await Promise.all(replicas.map((replica) => this.#trial(candidate, share, replica)));
    let sum = 0;
    for (const loss of losses) {
      if (loss === undefined) return undefined;
      sum += loss / losses.length;
    }
    return sum;
  }

  async #trial(candidate: Candidate, share: number, replica: number): Promise<number | undefined> {
    const { objective, memory } = this.#options;
    const key = `${share.toFixed(3)} ${replica} ${candidateKey(candidate)}`;
    const known = memory.get(key);
    if (known !== undefined) {
      this.#simulated.add(candidateKey(candidate));
      if (!this.#own.has(key) && !this.#remembered.has(key)) {
        this.#remembered.add(key);
        this.#spent += share;
      }
      return known;
    }
    await this.#turn();
    try {
      if (this.#isOver) return undefined;
      this.#trials++;
      this.#leftAtStart ??= this.#options.millisLeft();
      this.#spent += share;
      this.#ownSpent += share;
      const result = await this.#pool.run({ kind: "trial", trial: { candidate, objective, share, replica } });
      const answered = result.completed / result.losses.length;
      const loss = lossOf(objective, result.losses) * unansweredFactor(objective, answered);
      this.#own.add(key);
      this.#simulated.add(candidateKey(candidate));
      memory.put(key, loss);
      this.#options.progress?.(this.#trials, this.#best[0]);
      return loss;
    } finally {
      this.#running--;
      this.#waiting.shift()?.();
    }
  }

  /** Resolves when fewer trials are under way than may be, so that the time is looked at before each. */
  async #turn(): Promise<void> {
    if (this.#running >= this.#options.parallel) await new Promise<void>((go) => this.#waiting.push(go));
    this.#running++;
  }
}
