import type { Micros } from "#core/base/units.ts";
import type { StepResiduals } from "#engine/step-drift.ts";
import { meanOf } from "../figure/mean-of.ts";
import { BETWEEN_RUNS_STATED, betweenRunsOf } from "../recorded/between-runs.ts";
import { fitSteady, type SteadyFit, type SteadyParameter, type SteadyPoint } from "./steady-fit.ts";
import { pointKey } from "./steady-protocol.ts";
import { fewBatches, robustSpread } from "./step-residuals.ts";

/** A measurement of a point, one of several: when it was made, and in which round of all points. */
export interface TimedPoint extends SteadyPoint {
  /** From 0 on; each has every point once. */
  readonly round: number;
  readonly beganMicros: Micros;
  readonly endedMicros: Micros;
}

/** What points that are asked again and again show of how an engine's speed wanders. */
export interface SteadyChance {
  /** Logarithms of how many times as long as in all of them answers took, round by round; mean 0. */
  readonly rounds: readonly number[];
  readonly residuals: StepResiduals;
}

/** How fast the rounds were, and how well their mean is known. */
export interface RoundSpeeds {
  readonly rounds: readonly number[];
  /** Of their mean, as if each round were a draw; NaN for one round. */
  readonly error: number;
  /** The same of each measurement, in order. */
  readonly levels: readonly number[];
}

/** A parameter is never less sure than so. */
const ERROR_MAX = 0.5;

/**
 * Times per token of each measurement against those of the same point in all rounds. A point is its own anchor: what is
 * asked is the same, so that only the engine's speed differs.
 */
export function roundSpeeds(points: readonly TimedPoint[]): RoundSpeeds {
  const usual = new Map(
    [...Map.groupBy(points, pointKey)].map(([name, own]) => [name, meanOf(own.map((one) => Math.log(one.tpotMicros)))]),
  );
  const levels = points.map((point) => Math.log(point.tpotMicros) - usual.get(pointKey(point))!);
  const byRound = [...Map.groupBy(levels.keys(), (i) => points[i]!.round).values()];
  const rounds = byRound.map((own) => meanOf(own.map((i) => levels[i]!)));
  return { rounds, error: meanError(rounds), levels };
}

/**
 * The fit is to the mean speed of all measurements. What it leaves to chance: how measurements wandered about it, in the
 * order of time; how well their mean is known, and each coefficient, by leaving out a round at a time (the jackknife), since
 * what wanders is not drawn anew in each measurement; and what another run may be off by beyond, stated. Undefined for
 * one round, which shows nothing of it.
 */
export function steadyChance(
  points: readonly TimedPoint[],
  { engine, parameters, assumed }: SteadyFit,
): SteadyChance | undefined {
  const { rounds, error, levels } = roundSpeeds(points);
  if (rounds.length < 2) return undefined;
  const without = rounds.map((_, round) => {
    const kept = points.filter((point) => point.round !== round);
    return fitSteady(kept, engine, parameters).parameters;
  });
  const errorOf = (name: SteadyParameter) => jackknifed(without.map((fitted) => fitted[name]));
  const shareOf = (name: SteadyParameter) => {
    if (assumed[name] !== undefined || parameters[name] <= 0) return 0;
    return rounded(Math.min(ERROR_MAX, errorOf(name) / parameters[name]));
  };
  const spans = points.map(({ beganMicros, endedMicros }) => endedMicros - beganMicros);
  const asked = meanOf(points.map(({ users }, i) => users * spans[i]!)) / meanOf(spans);
  const betweenRuns = betweenRunsOf([], BETWEEN_RUNS_STATED, robustSpread(levels));
  return {
    rounds,
    residuals: {
      ...windowsOf(points, levels),
      levelError: rounded(Math.min(ERROR_MAX, error)),
      batchError: { decodes: rounded(asked), perDecodeMicros: rounded(errorOf("decode")) },
      delayError: shareOf("delay"),
      prefillError: shareOf("prefillToken"),
      betweenRuns,
    },
  };
}

/** The speeds by time: as many equal windows as there are measurements, each that of the measurement under way. */
function windowsOf(points: readonly TimedPoint[], levels: readonly number[]) {
  const from = points[0]!.beganMicros;
  const windowMicros = Math.max(1, Math.ceil((points.at(-1)!.endedMicros - from) / points.length));
  const windows = points.map((_, w) => {
    const middle = from + (w + 0.5) * windowMicros;
    const under = points.findIndex(({ endedMicros }) => endedMicros >= middle);
    return rounded(levels.at(under)!);
  });
  return { windowMicros, windows: [windows] };
}

function meanError(values: readonly number[]): number {
  const centre = meanOf(values);
  const squares = values.reduce((sum, one) => sum + (one - centre) ** 2, 0);
  return fewBatches(values.length) * Math.sqrt(squares / (values.length - 1) / values.length);
}

function jackknifed(values: readonly number[]): number {
  const centre = meanOf(values);
  const squares = values.reduce((sum, one) => sum + (one - centre) ** 2, 0);
  return fewBatches(values.length) * Math.sqrt(((values.length - 1) / values.length) * squares);
}

function rounded(value: number): number {
  return Math.round(value * 1e5) / 1e5;
}
