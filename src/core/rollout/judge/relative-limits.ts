import type { ArmTally } from "./arm-tally.ts";
import type { BlockKind } from "./block-differences.ts";
import type { ClusteredShare, ClusterGroups } from "./cluster-groups.ts";
import {
  type Guardrail,
  type GuardrailReading,
  type OpenRequest,
  overdueOf,
  RATES,
  type RateFigure,
} from "./guardrail.ts";
import { MEMBERS_MAX, type Membership, type MemberTallies } from "./member-tallies.ts";
import type { TimeFigure, TimeMetric } from "./outcome.ts";
import { shareAtLeast } from "./share-bound.ts";
import { QUANTILES, TimeHistogram } from "./time-histogram.ts";
import { type SavedExcess, WindowExcess } from "./window-excess.ts";

/** An arm and the control, all that they did, for everybody and for each member. */
export interface ComparedArms {
  readonly totals: readonly ArmTally[];
  /** Undefined where windows are compared. */
  readonly groups: ClusterGroups | undefined;
  readonly members: MemberTallies;
}

/** What limits share, and how pools, where arms have any, get their keys. */
export interface GuardSetting {
  readonly level: number;
  readonly pools?: "kept" | "redrawn" | undefined;
}

export type SavedRelative = readonly (readonly [string, SavedExcess])[];

/** Fewer groups of one size do not show how alike the requests of a cluster are. */
const GROUPS_MIN = 8;
/** A pool that keeps its keys has what it happened to get: only times that are as many times the other's are surely harm. */
const POOLS_MAX = 5;
const TAIL = /p9\d$/;
/** Of the level of all relative limits: what those have that are judged for each member. */
const MEMBERS_SHARE = 0.5;

/**
 * Limits relative to the control, over all that was compared so far, so that with probability 1 - `level` none that is kept
 * is ever taken for crossed. Where clusters are compared a share of requests is as sure as clusters make it; where windows
 * are, each block of them is one value. Drift and bursts meet both arms alike in either.
 */
export class RelativeLimits {
  readonly #guardrails: readonly Guardrail[];
  readonly #arms: number;
  readonly #level: number;
  readonly #keepsKeys: boolean;
  readonly #blocks: BlockKind;
  readonly #excess: Map<string, WindowExcess>;

  constructor(
    arms: number,
    guardrails: readonly Guardrail[],
    { level, pools }: GuardSetting,
    saved: SavedRelative = [],
  ) {
    this.#guardrails = guardrails.filter(({ relativeMax }) => relativeMax !== undefined);
    this.#arms = arms;
    this.#level = level;
    this.#keepsKeys = pools === "kept";
    this.#blocks = { carriesOver: pools !== undefined };
    this.#excess = new Map(saved.map(([key, one]) => [key, new WindowExcess(one)]));
  }

  /** What is to be watched one by one. */
  static membershipsOf(guardrails: readonly Guardrail[]): ReadonlySet<Membership> {
    return new Set(guardrails.flatMap(({ each }) => (each === undefined ? [] : [each])));
  }

  /** A block of windows, whole: what each arm did in it. */
  compareBlock(tallies: readonly ArmTally[], members: MemberTallies): void {
    for (let arm = 1; arm < this.#arms; arm++) {
      for (const [i, guardrail] of this.#guardrails.entries()) {
        const { each } = guardrail;
        if (each === undefined) this.#addBlock(`${arm} ${i}`, guardrail, tallies[arm]!, tallies[0]!);
        else {
          for (const [name, ofArms] of members.of(each)) {
            this.#addBlock(`${arm} ${i} ${name}`, guardrail, ofArms[arm]!, ofArms[0]!);
          }
        }
      }
    }
  }

  #addBlock(key: string, guardrail: Guardrail, own: ArmTally, control: ArmTally): void {
    const [mine, other] = [figureOf(guardrail, own, []), figureOf(guardrail, control, [])];
    const isRate = guardrail.figure.endsWith("-rate");
    const samples = Math.min(mine.samples, other.samples);
    if (samples < (isRate ? 1 : Math.min(guardrail.samplesMin, BLOCK_SAMPLES_MIN))) return;
    const limit = this.#relativeMaxOf(guardrail) * other.value;
    const excess = this.#excess.get(key) ?? new WindowExcess();
    this.#excess.set(key, excess);
    if (!isRate) {
      const expected = expectedOf(guardrail, own, control);
      if (Math.min(mine.value, limit) > 0) excess.addTime(mine.value, limit, TAIL.test(guardrail.figure), expected);
      return;
    }
    // As sure as the difference of two shares of so many is.
    const weight = (mine.weight * other.weight) / (mine.weight + other.weight);
    if (weight > 0) excess.addShare(mine.value - limit, weight);
  }

  #relativeMaxOf({ figure, relativeMax = Infinity }: Guardrail): number {
    return this.#keepsKeys && !figure.endsWith("-rate") ? Math.max(POOLS_MAX, relativeMax) : relativeMax;
  }

  readings(compared: ComparedArms, open: readonly OpenRequest[]): GuardrailReading[] {
    const readings: GuardrailReading[] = [];
    for (let arm = 1; arm < this.#arms; arm++) {
      for (const [i, guardrail] of this.#guardrails.entries()) {
        const evidence = this.#evidenceOf(guardrail);
        const { each } = guardrail;
        if (each === undefined) {
          const [control, own] = [compared.totals[0]!, compared.totals[arm]!];
          readings.push(this.#reading(`${arm} ${i}`, guardrail, arm, { own, control, open }, compared, evidence));
          continue;
        }
        for (const [name, tallies] of compared.members.of(each)) {
          const arms = { own: tallies[arm]!, control: tallies[0]!, open: [] };
          if (tallies[arm]!.counts.requests < guardrail.samplesMin) continue;
          const reading = this.#reading(`${arm} ${i} ${name}`, guardrail, arm, arms, compared, evidence);
          if (reading.samples >= guardrail.samplesMin) readings.push({ ...reading, of: name });
        }
      }
    }
    return readings;
  }

  saved(): SavedRelative {
    return [...this.#excess].map(([key, one]) => [key, one.saved()]);
  }

  #reading(
    key: string,
    guardrail: Guardrail,
    arm: number,
    {
      own,
      control,
      open,
    }: { readonly own: ArmTally; readonly control: ArmTally; readonly open: readonly OpenRequest[] },
    { groups }: ComparedArms,
    evidence: number,
  ): GuardrailReading {
    const { samplesMin } = guardrail;
    const most = this.#relativeMaxOf(guardrail);
    // Of both arms: what waits in one of them only would make it look slower.
    const waiting = (of: number) => (groups === undefined ? [] : open.filter((one) => one.arm === of));
    const ofOwn = figureOf(guardrail, own, waiting(arm));
    const ofControl = figureOf(guardrail, control, waiting(0));
    const enough = ofOwn.samples >= samplesMin && ofControl.samples >= samplesMin;
    const reading = { arm, guardrail, value: ofOwn.value, samples: ofOwn.samples };
    if (!enough) return { ...reading, low: NaN, control: NaN, limit: NaN, crossed: false };
    if (groups === undefined) {
      const limit = most * ofControl.value;
      const [excess, level] = [this.#excess.get(key), Math.exp(-evidence)];
      const isShare = guardrail.figure.endsWith("-rate");
      const low = isShare
        ? limit + (excess?.shareAtLeast(level, this.#blocks) ?? NaN)
        : limit * (excess?.timesAtLeast(level, this.#blocks) ?? NaN);
      return { ...reading, low, control: ofControl.value, limit, crossed: low > limit };
    }
    const [a, ended] = [0, arm].map((one) => clusteredOf(guardrail, groups, one));
    // Of an arm that answers nothing requests are taken to be as alike as the control's.
    const b = ended!.groups >= GROUPS_MIN ? ended : a;
    if (a!.groups < GROUPS_MIN) {
      return { ...reading, low: NaN, control: ofControl.value, limit: most * ofControl.value, crossed: false };
    }
    // A member's requests are as alike as all requests of a cluster are, and an arm's at least as alike as the control's: a
    // canary's few clusters alone would show little of that.
    const [others, mine] = [independentOf(a!, ofControl.weight), ofOwn.weight * Math.min(likeOf(a!), likeOf(b!))];
    const isRate = guardrail.figure.endsWith("-rate");
    // By the rule of succession: a control without a failure may have had one.
    const known = isRate ? (ofControl.value * others + 1) / (others + 1) : ofControl.value;
    const limit = most * known;
    // Of counts both arms together show it; times of a cluster are alike in its own way, which the fewer clusters show alone.
    const together = a!.groups + (b === a ? 0 : b!.groups - 1);
    const few = estimatedWorth((isRate ? together : Math.min(a!.groups, b!.groups)) - 1, evidence);
    const count = few / (1 / mine + (isRate ? most : 1) / others);
    // One that is not beyond it is not surely so: of many members nobody asks how far they are from it.
    const low = guardrail.each !== undefined && ofOwn.value <= limit ? NaN : ofOwn.atLeast(count, evidence);
    return { ...reading, low, control: known, limit, crossed: low > limit };
  }

  /** Natural logarithm of what is needed to be sure. */
  #evidenceOf({ each }: Guardrail): number {
    const some = this.#guardrails.filter((one) => (one.each === undefined) === (each === undefined)).length;
    const mixed = this.#guardrails.some((one) => (one.each === undefined) !== (each === undefined));
    const share = !mixed ? 1 : each === undefined ? 1 - MEMBERS_SHARE : MEMBERS_SHARE;
    const judged = some * (this.#arms - 1) * (each === undefined ? 1 : MEMBERS_MAX);
    return Math.log(judged / (this.#level * share));
  }
}

interface Figure {
  /** Requests. */
  readonly samples: number;
  /** What a share is of: requests, or tokens. */
  readonly weight: number;
  readonly value: number;
  readonly atLeast: (count: number, evidence: number) => number;
}

function figureOf(guardrail: Guardrail, tally: ArmTally, waiting: readonly OpenRequest[]): Figure {
  const { figure } = guardrail;
  if (figure.endsWith("-rate")) {
    const [some, all] = rateOf(guardrail, tally);
    const share = some / all;
    return {
      // Those that were not ranked yet show nothing.
      samples: guardrail.figure === "slow-rate" ? all : tally.counts.requests,
      weight: all,
      value: share,
      atLeast: (count, evidence) => shareAtLeast(count, share, evidence),
    };
  }
  const [metric, of] = figure.split(".") as [TimeMetric, TimeFigure];
  const times = metric === "tpot" || waiting.length === 0 ? tally.times(metric) : withWaiting(tally, metric, waiting);
  return {
    samples: times.count,
    weight: times.count,
    value: times.figure(of),
    atLeast: (count, evidence) => times.atLeast(of, count, evidence),
  };
}

/** Logarithm of what an arm's figure is predicted to be over the control's; 0 where that is not known. */
function expectedOf({ figure }: Guardrail, own: ArmTally, control: ArmTally): number {
  const [metric, of] = figure.split(".") as [TimeMetric, TimeFigure];
  const ratio = (own.expected(metric, of) ?? NaN) / (control.expected(metric, of) ?? NaN);
  return ratio > 0 && Number.isFinite(ratio) ? Math.log(ratio) : 0;
}

/** What has not ended has taken as long at least. */
function withWaiting(tally: ArmTally, metric: TimeMetric, waiting: readonly OpenRequest[]): TimeHistogram {
  const times = new TimeHistogram();
  tally.addTimesTo(times, metric);
  for (const { ttftMicros, ageMicros } of waiting) times.add(metric === "ttft" ? (ttftMicros ?? ageMicros) : ageMicros);
  return times;
}

function rateOf(guardrail: Guardrail, tally: ArmTally): readonly [some: number, all: number] {
  return guardrail.figure === "overdue-rate"
    ? [tally.above("ttft", overdueOf(guardrail)), tally.counts.requests]
    : RATES[guardrail.figure as RateFigure](tally.counts);
}

function clusteredOf(guardrail: Guardrail, groups: ClusterGroups, arm: number): ClusteredShare {
  const { figure } = guardrail;
  if (figure.endsWith("-rate")) return groups.shareOf(arm, (tally) => rateOf(guardrail, tally));
  const [metric, of] = figure.split(".") as [TimeMetric, TimeFigure];
  return groups.above(arm, metric, groups.total(arm).quantile(metric, of === "mean" ? 0.5 : QUANTILES[of]));
}

/**
 * What a count of independent requests is worth that was estimated with so many degrees of freedom: a t statistic has to be
 * as much larger than a normal one for the same evidence.
 */
function estimatedWorth(degrees: number, evidence: number): number {
  return (2 * evidence) / (degrees * Math.expm1((2 * evidence) / (degrees + 1)));
}

function independentOf(one: ClusteredShare, weight: number): number {
  return weight * likeOf(one);
}

/** How many independent requests one of them is worth. */
function likeOf({ requests, independent }: ClusteredShare): number {
  return independent / requests;
}

/** A block in which a tenant has fewer requests shows nothing of its times. */
const BLOCK_SAMPLES_MIN = 5;
