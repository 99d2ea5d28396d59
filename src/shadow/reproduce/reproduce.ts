import { choosersOf } from "#core/profile/profile-stages.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { policyKey } from "../tune/policy-space.ts";
import type { ExplainedShare } from "./explained-share.ts";
import { type DecidedRun, routerOfHeader } from "./decided-run.ts";
import { type Differences, differencesOf } from "./differences.ts";
import { type Halves, walk, type WalkCounts } from "./forced-walk.ts";
import { AS_RECORDED, type GaugeReading } from "./gauge-reading.ts";
import { specChanges } from "./spec-changes.ts";
import { neighboursOf, otherReadings, tiesInOrder, type TriedPolicy, withoutOne } from "./neighbours.ts";

/** How a policy fares on decisions: see ExplainedShare. */
export interface ExplainedFigures {
  readonly decisions: number;
  readonly share: number;
  readonly own: number;
  readonly blind: number;
  readonly possible: number;
  readonly gain: number;
}

/** A policy, and how far it explains what the other router decided. */
export interface Explaining {
  readonly base: string;
  readonly changes: readonly string[];
  readonly spec: ProfileSpec;
  /** How it reads gauges; absent where it reads none. */
  readonly gauges: string;
  /** Ties are broken in a fixed order, which is not the names'. */
  readonly hasTieOrder: boolean;
  readonly fitted: ExplainedFigures;
  readonly heldOut: ExplainedFigures;
}

export interface Reproduction {
  /** Whose decisions they are; undefined for gnomon's own. */
  readonly router: string | undefined;
  readonly counts: WalkCounts;
  readonly left: Readonly<Record<string, number>>;
  /** Policies that were tried. */
  readonly candidates: number;
  /** By the decisions that were fitted to. */
  readonly best: Explaining;
  /** The best variant of every profile, best first; the first is `best`. */
  readonly profiles: readonly Explaining[];
  /** The best one with gauges read otherwise. */
  readonly readings: readonly Explaining[];
  /** The best one with a part less. */
  readonly without: readonly Explaining[];
  readonly differences: Differences;
}

export interface TriedProfile {
  readonly name: string;
  readonly spec: ProfileSpec;
  /** It is of the other router's own project. */
  readonly isLikely?: boolean;
}

export interface ReproduceQuestion {
  readonly run: DecidedRun;
  /** Profiles that may be the other router's, the likeliest first: of equals the first is named. */
  readonly profiles: readonly TriedProfile[];
  /** Policies that are tried at most. */
  readonly candidatesMax: number;
}

/** Profiles whose variants are tried in a round. */
const ELITE = 6;
/** Policies that go through the run together: each keeps what its plugins learn. */
const TOGETHER = 64;
/** Decisions that a change has to explain beyond what is explained without it. */
const CHANGE_DECISIONS = 2;
/** Decisions by which a profile of another project has to be ahead of one of the router's own. */
const LIKELY_DECISIONS = 4;

/** Looks for the policy that explains a run's decisions best. One step is one walk through the run. */
export function* reproduce({ run, profiles, candidatesMax }: ReproduceQuestion): Generator<void, Reproduction> {
  const search = new Search(run, candidatesMax, profiles);
  const bases = profiles
    .filter(({ spec }) => choosersOf(spec).length === 1)
    .flatMap(({ name, spec }) => {
      const [own, free] = [spec, withFreeTies(spec)].map((one): TriedPolicy => ({
        base: name,
        changes: [],
        spec: one,
        reading: AS_RECORDED,
      })) as [TriedPolicy, TriedPolicy];
      return [own, free, ...tiesInOrder(free)];
    });
  if (bases.length === 0) throw new Error("expected a profile to try, got none");
  yield* search.tryAll(bases);
  yield* search.tryAll(search.best(2 * ELITE).flatMap(otherReadings));
  for (let next = search.unexplored(); next.length > 0; next = search.unexplored())
    yield* search.tryAll(next.flatMap(neighboursOf));
  const [best] = search.best(1) as [TriedPolicy];
  // What is shown of the best one counts against no bound.
  const beside = new Search(run, Infinity, profiles);
  yield* beside.tryAll([best]);
  const readings = otherReadings(best);
  const without = withoutOne(best);
  yield* beside.tryAll([...readings, ...without]);
  const named = search.best(Infinity).map((policy) => search.explaining(policy));
  const shown = [...Map.groupBy(named, ({ base }) => base).values()].map(([first]) => first!);
  return {
    router: routerOfHeader(run.header),
    counts: beside.counts,
    left: run.left,
    candidates: search.tried,
    best: shown[0]!,
    profiles: shown,
    readings: readings.map((policy) => beside.explaining(policy)),
    without: without.map((policy) => beside.explaining(policy)),
    differences: differencesOf(run, best),
  };
}

/** Whoever ties under another router's policy is as likely as the others, until its order is found. */
function withFreeTies(spec: ProfileSpec): ProfileSpec {
  const { plugin, parameters } = spec.picker;
  if (plugin === "round-robin") return { ...spec, picker: { plugin, parameters: { ...parameters, by: "last" } } };
  if (plugin !== "max-score") return spec;
  return { ...spec, picker: { plugin, parameters: { ...parameters, tieBreak: "random" } } };
}

class Search {
  readonly #run: DecidedRun;
  readonly #max: number;
  readonly #profiles: ReproduceQuestion["profiles"];
  readonly #found = new Map<string, { readonly policy: TriedPolicy; readonly halves: Halves }>();
  readonly #explored = new Set<string>();
  counts: WalkCounts = { compared: 0, only: 0, unexpected: 0 };

  constructor(run: DecidedRun, max: number, profiles: ReproduceQuestion["profiles"]) {
    this.#run = run;
    this.#max = max;
    this.#profiles = profiles;
  }

  get tried(): number {
    return this.#found.size;
  }

  *tryAll(policies: readonly TriedPolicy[]): Generator<void> {
    const fresh = new Map<string, TriedPolicy>();
    for (const policy of policies) {
      const key = keyOf(policy);
      if (!this.#found.has(key) && this.#found.size + fresh.size < this.#max) fresh.set(key, policy);
    }
    for (const [reading, same] of Map.groupBy(fresh, ([, policy]) => policy.reading)) {
      for (let from = 0; from < same.length; from += TOGETHER) {
        yield* this.#walk(same.slice(from, from + TOGETHER), reading);
      }
    }
  }

  *#walk(together: readonly (readonly [string, TriedPolicy])[], reading: GaugeReading): Generator<void> {
    const policies = together.map(([, policy]) => policy);
    const { halves, counts } = walk(this.#run, policies, reading);
    this.counts = counts;
    together.forEach(([key, policy], i) => this.#found.set(key, { policy, halves: halves[i]! }));
    yield;
  }

  /** The best variants of so many profiles, by what was fitted to; of equals the plainer and then the earlier one. */
  best(count: number): TriedPolicy[] {
    const ordered = [...this.#found.values()].sort((a, b) => this.#worth(b) - this.#worth(a));
    const bases = new Set<string>();
    return ordered
      .map(({ policy }) => policy)
      .filter(({ base }) => !bases.has(base) && bases.add(base).size > 0)
      .slice(0, count);
  }

  /** The best few whose neighbours were not tried yet; none once the bound is reached. */
  unexplored(): TriedPolicy[] {
    if (this.#found.size >= this.#max) return [];
    const next = this.best(ELITE).filter((policy) => !this.#explored.has(keyOf(policy)));
    for (const policy of next) this.#explored.add(keyOf(policy));
    return next;
  }

  explaining(policy: TriedPolicy): Explaining {
    const { halves } = this.#found.get(keyOf(policy))!;
    const { changes, spec, reading } = policy;
    const base = this.#nearest(spec);
    const gauges = otherReadings(policy).length === 0 ? "" : reading.name;
    const hasTieOrder = policy.inOrder === true;
    return {
      base,
      changes,
      spec,
      gauges,
      hasTieOrder,
      fitted: figuresOf(halves.fitted),
      heldOut: figuresOf(halves.heldOut),
    };
  }

  /** The profile that a policy is least changed from, wherever the search came from. */
  #nearest(spec: ProfileSpec): string {
    const far = this.#profiles.map(({ name, spec: from }) => ({ name, far: distance(from, spec) }));
    return far.reduce((nearest, one) => (one.far < nearest.far ? one : nearest)).name;
  }

  #worth({ policy, halves }: { readonly policy: TriedPolicy; readonly halves: Halves }): number {
    const changes = policy.changes.length + (policy.reading === AS_RECORDED ? 0 : 1);
    const isLikely = this.#profiles.some(({ name, isLikely }) => name === policy.base && isLikely === true);
    const ahead = (isLikely ? LIKELY_DECISIONS : 0) - changes * CHANGE_DECISIONS;
    return halves.fitted.gain + ahead / Math.max(1, halves.fitted.decisions);
  }
}

/** Of two policies; another part is more than another parameter. */
function distance(from: ProfileSpec, to: ProfileSpec): number {
  const isPart = (change: string): boolean => /^with(?:out)? | in place of /.test(change);
  return specChanges(from, to).reduce((sum, change) => sum + (isPart(change) ? PART_CHANGES : 1), 0);
}

const PART_CHANGES = 10;

function keyOf({ spec, reading, inOrder }: TriedPolicy): string {
  return `${reading.name} ${inOrder === true} ${policyKey(spec)}`;
}

function figuresOf({ decisions, share, own, blind, possible, gain }: ExplainedShare): ExplainedFigures {
  return { decisions, share, own, blind, possible, gain };
}
