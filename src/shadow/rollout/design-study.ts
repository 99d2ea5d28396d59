import { clustersNeeded } from "#core/rollout/judge/clusters-needed.ts";
import { addedBlocks, adjustedEstimate, noBlocks, plainEstimate } from "#core/rollout/judge/block-differences.ts";
import { effectFound, type Finding, type MeanEstimate, VALUES_MIN } from "#core/rollout/judge/confidence-sequence.ts";
import { figureLevel } from "#core/rollout/judge/figure-level.ts";
import { TIME_METRICS, type TimeMetric } from "#core/rollout/judge/outcome.ts";
import type { Design } from "#core/rollout/plan/rollout-plan.ts";
import { type Micros, MICROS_PER_SECOND } from "#core/base/units.ts";
import type { NamedDesign } from "../job/rollout-design.ts";
import type { Interval } from "../figure/interval.ts";
import { normalQuantile } from "../figure/normal-quantile.ts";
import { twoArmPlan } from "../job/two-arm-plan.ts";
import type { TrafficError, TrafficErrors } from "./traffic-error.ts";
import type { UnexplainedErrors } from "./unexplained-error.ts";
import { type Findable, foundBetween, shareFoundIn, valuesForShare } from "./values-until-found.ts";
import {
  type PlannedFigureKey,
  type FigureSample,
  PLANNED_FIGURES,
  type PlannedFigure,
  type RolloutSample,
} from "../job/rollout-sample.ts";

/**
 * What a design makes of one figure: the other arm's less the control's, microseconds. Where a rollout as long as the trace
 * has fewer values than the judge asks for, nobody knows what values differ by, however many rollouts are simulated: all have
 * the same few. Then what rests on that is undefined, and of hours there is nothing.
 */
export interface FigureStudy {
  /** The whole fleet by one against the whole fleet by the other, counted as the design counts. */
  readonly truth: number;
  /** What the design shows on average. */
  readonly estimate: number;
  readonly bias: number;
  /** Standard error of the bias, from so few simulated rollouts. */
  readonly biasError: number | undefined;
  /**
   * Standard deviation of what one rollout shows, as measured, that is as long as the trace; with what the recorded run
   * differed by from its simulation, where it is known.
   */
  readonly runError: number | undefined;
  /** Variance of the estimate with the simulator's predictions, over the variance without. */
  readonly varianceLeft: number | undefined;
  /**
   * How long it must run to find what it shows with the power that is asked for, on other traffic of the kind; undefined
   * where that is beyond `HOURS_MAX`, or where traffic differs too much for any time, or where it is not known.
   */
  readonly hours: number | undefined;
  /** The same with predictions. */
  readonly hoursAdjusted: number | undefined;
  /** Smallest difference that is found in a number of hours, by those hours' order in the question. */
  readonly detectable: readonly number[];
  readonly detectableAdjusted: readonly number[];
  /** Probability to find what it shows in a number of hours, and the same with predictions; of the asked figure alone. */
  readonly powers: readonly number[];
  readonly powersAdjusted: readonly number[];
  /**
   * Where the probability of `hours`, and those of `powers`, lie with one of 90 % on any one other traffic of the kind, since
   * how large the effect is there is not known; of the asked figure alone.
   */
  readonly hoursRange: Interval | undefined;
  readonly powerRanges: readonly Interval[];
  /** Independent values in one rollout as long as the trace. */
  readonly clusters: number;
  /** Independent values in an hour: blocks of windows, or clusters. */
  readonly valuesPerHour: number;
}

export interface DesignStudy extends NamedDesign {
  readonly figures: Readonly<Record<PlannedFigureKey, FigureStudy>>;
  /** Blocks of windows or clusters that the intervals are to be narrowest at, for the plan's own duration. */
  readonly requests: number;
}

/** What simulated rollouts of one trace do not show. */
interface DesignErrors {
  readonly unexplained?: UnexplainedErrors | undefined;
  readonly traffic?: TrafficErrors;
}

export interface PowerQuestion {
  readonly level: number;
  /** What the rollout is to find, which has the larger part of the level. */
  readonly primary: PlannedFigureKey;
  readonly power: number;
  /** Durations that detectable differences are stated for. */
  readonly hours: readonly number[];
}

const { arms: TWO_ARMS } = twoArmPlan({ kind: "shadow", windowMicros: 1 }, 0);
const MICROS_PER_HOUR = 3600 * MICROS_PER_SECOND;
/** A plan beyond two months is none. */
const HOURS_MAX = 24 * 60;
/** Blocks below which a deviation is not known, and clusters below which a mean of theirs is not normal. */
const BLOCKS_MIN = 10;
const CLUSTERS_MIN = 200;

/** Puts together what the simulated rollouts of one design found. */
export function designStudy(
  named: NamedDesign,
  truth: RolloutSample,
  samples: readonly RolloutSample[],
  spanMicros: Micros,
  question: PowerQuestion,
  { unexplained = {}, traffic = {} }: DesignErrors = {},
): DesignStudy {
  const figures = TIME_METRICS.flatMap((metric) =>
    PLANNED_FIGURES.map((figure): [PlannedFigureKey, FigureStudy] => {
      const key: PlannedFigureKey = `${metric}.${figure}`;
      const found = samples.map((sample) => sample.figures[key]);
      const error = figure === "mean" ? (unexplained[metric] ?? 0) : 0;
      const expected = truth.figures[key].plain.mean;
      return [key, figureStudy(named, expected, found, spanMicros, question, { error, traffic: traffic[key] }, key)];
    }),
  );
  return {
    ...named,
    figures: Object.fromEntries(figures) as unknown as DesignStudy["figures"],
    requests: truth.requests / 2,
  };
}

function figureStudy(
  { stages, design }: NamedDesign,
  truth: number,
  found: readonly FigureSample[],
  spanMicros: Micros,
  { level, primary, power, hours }: PowerQuestion,
  { error: unexplained, traffic }: { readonly error: number; readonly traffic: TrafficError | undefined },
  key: PlannedFigureKey,
): FigureStudy {
  const [, figure] = key.split(".") as [TimeMetric, PlannedFigure];
  const needed = clustersNeeded(design, figure, middle(found.map(({ plain: { skewness = 0 } }) => skewness)));
  const blocks = found.every((one) => one.blocks !== undefined);
  const [plain, adjusted] = blocks ? pooledBlocks(found) : pooledClusters(found);
  const clusters = plain.count / found.length;
  const { perHour, fixed } = arrivingOf(design, clusters, spanMicros / MICROS_PER_HOUR);
  const bias = adjusted.mean - truth;
  const shown = { truth, estimate: adjusted.mean, bias, clusters, valuesPerHour: perHour };
  // Tenants become no more, so that it is known of them that nothing is found.
  if (clusters < VALUES_MIN) return { ...shown, ...notKnown(fixed === undefined ? [] : hours.map(() => Infinity)) };
  const spread = spreadsOf(design, found);
  const error = (spread.adjusted * adjusted.deviation) / Math.sqrt(adjusted.count);
  const planned = {
    level: figureLevel({ level, primary }, { design: staged(design, stages), arms: TWO_ARMS }, key),
    standardErrors: normalQuantile(power),
  };
  const finding = (one: MeanEstimate) => ({
    ...planned,
    degreesOf: blocks
      ? (count: number) => count - 1 - Number(one === adjusted)
      : // As large a part of the clusters as in the simulation is in the smaller arm.
        (count: number) => (count * (plain.degrees + found.length)) / plain.count - 1,
    valuesMax: Math.max(BLOCKS_MIN, HOURS_MAX * perHour),
  });
  // Of a mean: in some rollout an arm had too few values to differ.
  if (figure === "mean" && !Number.isFinite(error)) return { ...shown, ...notKnown([]) };
  // Of one value, so that a rollout as long as the trace has the error that the recorded run shows.
  const live = unexplained * Math.sqrt(clusters);
  const deviationOf = (one: MeanEstimate) =>
    Math.hypot(one.deviation * (one === plain ? spread.plain : spread.adjusted), live);
  // The smaller arm must have as many as the judge asks for.
  const judged = blocks ? VALUES_MIN : Math.ceil((needed * plain.count) / (plain.degrees + found.length));
  const findable = (one: MeanEstimate): Findable => ({
    ...finding(one),
    effect: adjusted.mean,
    effectError: error,
    trafficError: traffic === undefined ? 0 : trafficErrorOf(traffic, blocks),
    deviation: deviationOf(one),
    // All simulated rollouts have the same blocks of traffic; clusters are many.
    ...(blocks && { deviationDegrees: Math.max(1, Math.floor(clusters) - 1) }),
    valuesMin: Math.max(VALUES_MIN, judged),
  });
  const least = blocks ? BLOCKS_MIN : Math.max(CLUSTERS_MIN, judged);
  const asked = { power, least, perHour, fixed, hours: key === primary ? hours : [] };
  const detectable = (one: MeanEstimate) =>
    hours.map((duration) => detectableIn(duration, asked, judged, deviationOf(one), finding(one)));
  return {
    ...shown,
    biasError: error,
    runError: deviationOf(plain) / Math.sqrt(clusters),
    varianceLeft: (adjusted.deviation / plain.deviation) ** 2,
    hoursAdjusted: hoursToFind(findable(adjusted), asked),
    powersAdjusted: powersOf(findable(adjusted), asked),
    ...powerOf(findable(plain), asked, traffic && rangeErrorOf(traffic, blocks)),
    detectable: detectable(plain),
    detectableAdjusted: detectable(adjusted),
  };
}

function notKnown(
  detectable: readonly number[],
): Omit<FigureStudy, "truth" | "estimate" | "bias" | "clusters" | "valuesPerHour"> {
  return {
    biasError: undefined,
    runError: undefined,
    varianceLeft: undefined,
    hours: undefined,
    hoursAdjusted: undefined,
    powers: [],
    powersAdjusted: [],
    hoursRange: undefined,
    powerRanges: [],
    detectable,
    detectableAdjusted: detectable,
  };
}

/** How long until the effect is found, how likely it is by then and in the hours that are asked for, and where that lies. */
function powerOf(
  findable: Findable,
  asked: AskedPower,
  trafficError = 0,
): Pick<FigureStudy, "hours" | "powers" | "hoursRange" | "powerRanges"> {
  const hours = hoursToFind(findable, asked);
  // A range has to hold, so that it has what parts in a row have in common too.
  const ranged = { ...findable, trafficError };
  const rangeIn = (duration: number): Interval => {
    const count = countIn(asked, duration);
    return count < 1 ? { low: 0, high: 0 } : foundBetween(ranged, count);
  };
  return {
    hours,
    powers: powersOf(findable, asked),
    hoursRange: asked.hours.length > 0 && hours !== undefined ? rangeIn(hours) : undefined,
    powerRanges: asked.hours.map(rangeIn),
  };
}

/** How many values an hour has, and all that there are, and in how many hours they came, where time brings no others. */
interface Arriving {
  readonly perHour: number;
  readonly fixed: { readonly count: number; readonly hours: number } | undefined;
}

interface AskedPower extends Arriving {
  readonly power: number;
  /** Values of the shortest rollout that is planned. */
  readonly least: number;
  readonly hours: readonly number[];
}

/** Whether what is compared stays as many as it is: tenants come again, and are no others for it. */
export function isFixed(design: Design): boolean {
  return "by" in design && design.by === "tenant";
}

function arrivingOf(design: Design, count: number, hours: number): Arriving {
  // At the end of a trace the judge closes a block that is not whole; a rollout has none.
  const wholePerHour = design.kind === "switchback" ? MICROS_PER_HOUR / (2 * design.windowMicros) : Infinity;
  return { perHour: Math.min(wholePerHour, count / hours), fixed: isFixed(design) ? { count, hours } : undefined };
}

function countIn({ perHour, fixed }: Arriving, duration: number): number {
  return fixed?.count ?? duration * perHour;
}

/** Of fewer than `judged` the judge has no interval, however long it runs. */
function detectableIn(
  duration: number,
  arriving: Arriving,
  judged: number,
  deviation: number,
  finding: Finding,
): number {
  const count = countIn(arriving, duration);
  if (arriving.fixed !== undefined && count < judged) return Infinity;
  return effectFound(Math.max(1, count), deviation, finding);
}

function hoursToFind(findable: Findable, { power, least, perHour, fixed }: AskedPower): number | undefined {
  const values = valuesForShare(findable, power);
  if (fixed !== undefined) return values <= fixed.count ? fixed.hours : undefined;
  return values < Infinity ? Math.max(least, values) / perHour : undefined;
}

function powersOf(findable: Findable, asked: AskedPower): number[] {
  return asked.hours.map((duration) => {
    const count = countIn(asked, duration);
    return count < 1 ? 0 : shareFoundIn(findable, count);
  });
}

/**
 * What the effect on other traffic of the kind is unsure by, as parts of the trace differ: of clusters once for the trace and
 * once for the other traffic; what blocks of that differ by is in their own deviation. Without the allowance for what parts
 * in a row have in common: an interval has to hold, and a probability has to be right on average.
 */
function trafficErrorOf(traffic: TrafficError, blocks: boolean): number {
  return rangeErrorOf(traffic, blocks) / Math.sqrt(traffic.drift);
}

/** The same with that allowance. */
function rangeErrorOf({ error }: TrafficError, blocks: boolean): number {
  return error * (blocks ? 1 : Math.SQRT2);
}

function staged(design: Design, stages: number): Design {
  return design.kind === "canary" ? { ...design, stepPercents: Array.from({ length: stages }, () => 1) } : design;
}

function spreadsOf(
  design: Design,
  found: readonly FigureSample[],
): { readonly plain: number; readonly adjusted: number } {
  const spreadOf = (all: readonly MeanEstimate[]) => (design.kind === "pools" ? betweenRuns(all) : 1);
  return { plain: spreadOf(found.map((one) => one.plain)), adjusted: spreadOf(found.map((one) => one.adjusted)) };
}

/**
 * How much further whole rollouts are apart than the deviation of their windows lets expect, at least 1. Neighbouring
 * windows of a pool share its queue, and its keys stay with it: fewer of them than there are say something of their
 * own.
 */
function betweenRuns(all: readonly MeanEstimate[]): number {
  const middle = all.reduce((sum, { mean }) => sum + mean, 0) / all.length;
  const apart = all.reduce((sum, { mean }) => sum + (mean - middle) ** 2, 0) / (all.length - 1);
  const expected = all.reduce((sum, { deviation, count }) => sum + deviation ** 2 / count, 0) / all.length;
  // The deviation of few is estimated too low: by c4 of quality control, about 4 (n - 1) / (4 (n - 1) + 1).
  const few = 4 * (all.length - 1);
  const spread = (Math.sqrt(apart / expected) * (few + 1)) / few;
  return expected > 0 && spread > 1 ? spread : 1;
}

function middle(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** All blocks of all rollouts as of one: each has its own order of arms, on the same traffic. */
function pooledBlocks(found: readonly FigureSample[]): readonly [MeanEstimate, MeanEstimate] {
  const sums = found.reduce((all, { blocks }) => (blocks === undefined ? all : addedBlocks(all, blocks)), noBlocks());
  return [plainEstimate(sums), adjustedEstimate(sums)];
}

/** Means over rollouts; the deviation of one value, and as many values as there are in all. */
function pooledClusters(found: readonly FigureSample[]): readonly [MeanEstimate, MeanEstimate] {
  const pooled = (all: readonly MeanEstimate[]): MeanEstimate => {
    const sum = (of: (one: MeanEstimate) => number) => all.reduce((total, one) => total + of(one), 0);
    return {
      count: sum(({ count }) => count),
      mean: sum(({ mean }) => mean) / all.length,
      deviation: Math.sqrt(sum(({ deviation }) => deviation ** 2) / all.length),
      degrees: sum(({ degrees }) => degrees),
    };
  };
  return [pooled(found.map(({ plain }) => plain)), pooled(found.map(({ adjusted }) => adjusted))];
}
