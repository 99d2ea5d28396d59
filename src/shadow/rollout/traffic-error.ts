import { valuesForOne } from "#core/rollout/judge/block-differences.ts";
import { TIME_METRICS } from "#core/rollout/judge/outcome.ts";
import type { Micros } from "#core/base/units.ts";
import type { CandidateOutcome } from "../candidate/candidate.ts";
import type { PlannedFigureKey, PlannedFigure } from "../job/rollout-sample.ts";
import { PLANNED_FIGURES } from "../job/rollout-sample.ts";

/** What a difference owes to the traffic that happened to come. */
export interface TrafficError {
  /** Standard error of the trace's difference, as its parts differ; microseconds. */
  readonly error: number;
  /** Parts whose difference lay where the others had it expected with a probability of 90 %. */
  readonly covered: number;
  readonly of: number;
}

export type TrafficErrors = Readonly<Partial<Record<PlannedFigureKey, TrafficError>>>;

/** Parts of a trace with as many requests each: long beside a burst, and as many as show how they differ. */
const PARTS = 9;
/** Requests that a part must have of a figure. */
const PART_REQUESTS_MIN = { mean: 10, p99: 100 } as const;
/** Of Student's distribution with as many degrees of freedom as eight parts leave, 95 %; with nine. */
const STUDENT_OTHERS = 1.895;
export const STUDENT_ALL = 1.86;

/**
 * How far the whole fleet's difference of two profiles depends on the traffic: both were simulated on the same requests, so
 * that parts of the trace differ by their traffic alone. The error is that of a jackknife over whole parts, which keeps what
 * is alike within them (H. Künsch, "The jackknife and the bootstrap for general stationary observations", 1989), times what
 * neighbours have in common, since traffic drifts; every
 * part is held out once and held against the others.
 */
export function trafficErrors(
  [control, other]: readonly [CandidateOutcome, CandidateOutcome],
  startMicros: Micros,
): TrafficErrors {
  const compared = control.arrivalMicros.filter((at) => at >= startMicros).sort();
  // By their number, not by time: where sessions end one after the other the last stretch has next to none.
  const ends = Array.from({ length: PARTS - 1 }, (_, part) => {
    return compared[Math.floor(((part + 1) * compared.length) / PARTS)] ?? Infinity;
  });
  const partOf = Int8Array.from(control.arrivalMicros, (at) => {
    return at >= startMicros ? ends.filter((end) => at >= end).length : -1;
  });
  const entries = TIME_METRICS.flatMap((metric) =>
    PLANNED_FIGURES.flatMap((figure): [PlannedFigureKey, TrafficError][] => {
      const parts = Array.from({ length: PARTS }, (_, part) => {
        const own = (outcome: CandidateOutcome) =>
          outcome[`${metric}Micros`].filter((value, row) => partOf[row] === part && !Number.isNaN(value));
        const [before, after] = [own(control), own(other)];
        const weight = Math.min(before.length, after.length);
        return { weight, difference: figureOf(after, figure) - figureOf(before, figure) };
      });
      const known = parts.filter(({ weight }) => weight >= PART_REQUESTS_MIN[figure]);
      return known.length < PARTS ? [] : [[`${metric}.${figure}`, errorOf(known)]];
    }),
  );
  return Object.fromEntries(entries);
}

interface Part {
  readonly weight: number;
  readonly difference: number;
}

function errorOf(parts: readonly Part[]): TrafficError {
  const without = parts.map((_, i) => meanOf(parts.filter((_part, other) => other !== i)));
  const all = meanOf(parts);
  const squares = without.reduce((sum, one) => sum + (one - all) ** 2, 0);
  const apart = parts.map(({ difference }) => difference - all);
  const products = apart.reduce((sum, one, i) => sum + one * (apart[i - 1] ?? 0), 0);
  const correlation = products / apart.reduce((sum, one) => sum + one * one, 0);
  const drift = valuesForOne(Number.isFinite(correlation) ? correlation : 0, parts.length);
  const error = Math.sqrt(((parts.length - 1) / parts.length) * squares * drift);
  const covered = parts.filter(({ difference }, i) => {
    const others = parts.filter((_part, other) => other !== i);
    const middle = without[i]!;
    const variance = others.reduce((sum, one) => sum + (one.difference - middle) ** 2, 0) / (others.length - 1);
    return Math.abs(difference - middle) <= STUDENT_OTHERS * Math.sqrt(variance * (1 + 1 / others.length));
  }).length;
  return { error, covered, of: parts.length };
}

function meanOf(parts: readonly Part[]): number {
  const weights = parts.reduce((sum, { weight }) => sum + weight, 0);
  return parts.reduce((sum, { weight, difference }) => sum + weight * difference, 0) / weights;
}

function figureOf(values: Float64Array, figure: PlannedFigure): number {
  if (figure === "mean") return values.reduce((sum, value) => sum + value, 0) / values.length;
  const sorted = values.toSorted();
  return sorted[Math.min(sorted.length - 1, Math.ceil(0.99 * sorted.length) - 1)] ?? NaN;
}
