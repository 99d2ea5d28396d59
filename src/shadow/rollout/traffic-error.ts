import { valuesForOne } from "#core/rollout/judge/block-differences.ts";
import { TIME_METRICS } from "#core/rollout/judge/outcome.ts";
import { type Micros, MICROS_PER_SECOND } from "#core/base/units.ts";
import type { CandidateOutcome } from "../candidate/candidate.ts";
import { meanOf } from "../figure/mean-of.ts";
import { PLANNED_FIGURES, type PlannedFigure, type PlannedFigureKey } from "../job/rollout-sample.ts";

/** What a difference owes to the traffic that happened to come. */
export interface TrafficError {
  /** Standard error of the trace's difference, as its parts differ; microseconds. */
  readonly error: number;
  /** How many parts in a row say as much as one that stands alone. */
  readonly drift: number;
  /** Parts whose difference lay where the others had it expected with a probability of 90 %. */
  readonly covered: number;
  readonly of: number;
}

export type TrafficErrors = Readonly<Partial<Record<PlannedFigureKey, TrafficError>>>;

/** Parts of a trace, with as many answered requests each: by time the last stretch, where sessions end, has next to none. */
const PARTS = 9;
/** Requests that a part must have of a figure. */
const PART_REQUESTS_MIN = { mean: 10, p99: 100 } as const;
/** Shorter ones show how bursts differ, not how traffic does. */
const PART_MICROS_MIN = 10 * MICROS_PER_SECOND;
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
  const { arrivalMicros } = control;
  const inOrder = Array.from(arrivalMicros, (_, row) => row)
    .filter((row) => arrivalMicros[row]! >= startMicros)
    .sort((one, another) => arrivalMicros[one]! - arrivalMicros[another]!);
  const entries = TIME_METRICS.flatMap((metric) => {
    const [before, after] = [control, other].map((outcome) => outcome[`${metric}Micros`]);
    const rows = inOrder.filter((row) => !Number.isNaN(before![row]! + after![row]!));
    const parts = Array.from({ length: PARTS }, (_, part) => {
      return rows.slice(Math.floor((part * rows.length) / PARTS), Math.floor(((part + 1) * rows.length) / PARTS));
    });
    const [first, last] = [rows[0], rows.at(-1)].map((row) => (row === undefined ? 0 : arrivalMicros[row]!));
    const isShort = last! - first! < PARTS * PART_MICROS_MIN;
    return PLANNED_FIGURES.flatMap((figure): [PlannedFigureKey, TrafficError][] => {
      if (isShort || rows.length < PARTS * PART_REQUESTS_MIN[figure]) return [];
      const differences = parts.map((part): Part => {
        const of = (values: Float64Array) =>
          figureOf(
            Float64Array.from(part, (row) => values[row]!),
            figure,
          );
        return { weight: part.length, difference: of(after!) - of(before!) };
      });
      return [[`${metric}.${figure}`, errorOf(differences)]];
    });
  });
  return Object.fromEntries(entries);
}

interface Part {
  readonly weight: number;
  readonly difference: number;
}

function errorOf(parts: readonly Part[]): TrafficError {
  const without = parts.map((_, i) => weightedMean(parts.filter((_part, other) => other !== i)));
  const all = weightedMean(parts);
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
  return { error, drift, covered, of: parts.length };
}

function weightedMean(parts: readonly Part[]): number {
  const weights = parts.reduce((sum, { weight }) => sum + weight, 0);
  return parts.reduce((sum, { weight, difference }) => sum + weight * difference, 0) / weights;
}

function figureOf(values: Float64Array, figure: PlannedFigure): number {
  if (figure === "mean") return meanOf(values);
  const sorted = values.toSorted();
  return sorted[Math.min(sorted.length - 1, Math.ceil(0.99 * sorted.length) - 1)] ?? NaN;
}
