import type { FigureKey } from "./figure-key.ts";

/** Where a document names none: what all traffic may lose by the next step, and requests of each arm that a step has. */
export const MARGIN_DEFAULT = 0.1;
export const STEP_SAMPLES_DEFAULT = 100;
/** Of all requests, those that may fail more by the next step. */
export const ERRORS_MARGIN = 0.01;
/** The same of those that are slow beside others that end at the same time. */
export const SLOW_MARGIN = 0.01;

/** One figure of a canary's arm beside the control's. */
export interface CanaryFigure {
  readonly figure: FigureKey | "error-rate" | "slow-rate";
  /** The arm's over the control's less 1; of errors the difference of the shares. Valid at every look. */
  readonly value: number;
  readonly low: number;
  readonly high: number;
  /** What it may be at most for the next step. */
  readonly allowed: number;
}

/** A figure of a canary's arm that is surely beyond the margin. */
export interface SurelyWorse {
  readonly figure: FigureKey;
  /** The arm's over the control's less 1, at least, and what all traffic may lose. */
  readonly low: number;
  readonly allowed: number;
}

/** Whether a canary may take its next step. */
export interface CanaryReading {
  /** Share of the next step. */
  readonly nextPercent: number;
  /** Requests of the arm that has fewer, and how many it needs. */
  readonly samples: number;
  readonly samplesMin: number;
  readonly figures: readonly CanaryFigure[];
  /** Absent where none is. */
  readonly worse?: SurelyWorse;
  /** advance: harm beyond the margin is ruled out. worse: there surely is some. */
  readonly outcome: "advance" | "hold" | "worse";
  /** How many times as long a step must be in all until it is likely decided; undefined where that is not known. */
  readonly timesAsLong: number | undefined;
}

/**
 * What the figures allow. A step is taken when each is surely within what it may be, a margin over the share of traffic
 * that is to have the arm: all traffic loses no more than the margin. All must hold, so each has the whole level of the
 * step (an intersection-union test: R. Berger, 1982). They are the median of the time that the rollout is about, errors, and
 * requests that are slow beside others, which no median shows: of the few sessions of a first step nothing else is known
 * within hours, and limits watch it. It goes back where any figure is surely beyond the margin: an arm that is surely slower
 * and within it does what was asked of it, and the longer it is watched the surer that little would be found.
 */
export function canaryReading(
  given: Pick<CanaryReading, "nextPercent" | "samples" | "samplesMin" | "figures" | "worse">,
): CanaryReading {
  const { figures, samples, samplesMin, worse } = given;
  const within = samples >= samplesMin && figures.every(({ high, allowed }) => high <= allowed);
  const outcome = within ? "advance" : worse !== undefined ? "worse" : "hold";
  const times = figures.map(({ value, high, allowed }) =>
    high <= allowed ? 1 : ((high - value) / (allowed - value)) ** 2,
  );
  const decided = figures.every(
    ({ value, allowed, high }) => high <= allowed || (value < allowed && Number.isFinite(high)),
  );
  const bySamples = samples > 0 ? samplesMin / samples : NaN;
  const timesAsLong = Math.max(bySamples, ...times);
  return { ...given, outcome, timesAsLong: decided && Number.isFinite(timesAsLong) ? timesAsLong : undefined };
}
