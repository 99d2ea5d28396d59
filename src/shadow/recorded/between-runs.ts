import type { BetweenRuns, SeenRun } from "#engine/step-drift.ts";
import { meanOf } from "../figure/mean-of.ts";

/**
 * What is taken for another run of the same engine where only one was seen: another day of a machine that others may use
 * too, and another run of the same hours (session). Of two runs of one vLLM on a shared CPU within minutes, equal steps
 * took 3 to 10 % longer in the one than in the other, and the time outside the engine a fifth. Nine runs of it on three
 * days, of which two had a machine that others left alone and two one that eight others used, lay a factor of 1.8 apart in
 * the mean of the squares (npm run bench -- coverage --part real): one trace does not show which of them comes next.
 */
export const BETWEEN_RUNS_STATED: BetweenRuns = {
  level: 0.6,
  session: 0.06,
  delay: 0.7,
  sessionDelay: 0.2,
  prefill: 0.08,
  noise: 0.5,
  runs: 1,
};

export const BETWEEN_RUNS_PARTS = ["level", "delay", "prefill", "noise"] as const;
export type BetweenRunsPart = (typeof BETWEEN_RUNS_PARTS)[number];

/** One run's distance from what fits all of them: logarithms, NaN where it does not show. */
export interface RunDeviation extends Readonly<Record<BetweenRunsPart, number>> {
  /** Standard errors of the two that are seen through chance within the run. */
  readonly levelError: number;
  readonly noiseError: number;
}

/** Runs of one engine do not lie further apart, as logarithms; an engine file holds no more. */
const APART_MAX = 2;
/** Beyond these, runs differ in more than a machine does, and engines drawn so are none. */
const SPREAD_MAX = { level: 0.5, delay: 0.7, prefill: 0.5, noise: 1 } as const;
/** What was stated is of any machine, runs are of this one: it counts as much as a tenth of a further run. */
const STATED_WEIGHT = 0.1;

/**
 * The spread that another run will show: the variance seen between R runs, less what chance within them explains, and
 * that which was stated, weighed by R - 1 and STATED_WEIGHT (the scaled inverse chi-squared posterior's), and 1 / R more
 * since the middle of the runs is not known better. `wander` is the spread of the
 * logarithms of step times within a run.
 */
export function betweenRunsOf(runs: readonly RunDeviation[], given: BetweenRuns, wander: number): BetweenRuns {
  const session = given.session === undefined ? undefined : rounded(statedLevel(given.session, wander));
  const stated = {
    ...given,
    level: rounded(statedLevel(given.level, wander)),
    ...(session !== undefined && { session }),
  };
  if (runs.length < 2) return stated;
  const within: Partial<Record<BetweenRunsPart, number>> = {
    level: meanSquare(runs.map(({ levelError }) => levelError)),
    noise: meanSquare(runs.map(({ noiseError }) => noiseError)),
  };
  const spread = (part: BetweenRunsPart) => {
    const values = runs.map((run) => run[part]).filter(Number.isFinite);
    const more = values.length - 1;
    if (more < 1) return stated[part];
    const centre = meanOf(values);
    const seen = values.reduce((sum, value) => sum + (value - centre) ** 2, 0) / more;
    const between = Math.max(0, seen - (within[part] ?? 0));
    const variance =
      (STATED_WEIGHT * stated[part] ** 2 + more * between * (1 + 1 / values.length)) / (STATED_WEIGHT + more);
    return rounded(Math.min(SPREAD_MAX[part], Math.sqrt(variance)));
  };
  return {
    level: spread("level"),
    ...(session !== undefined && { session: Math.min(session, spread("level")) }),
    delay: spread("delay"),
    ...(given.sessionDelay !== undefined && { sessionDelay: Math.min(given.sessionDelay, spread("delay")) }),
    prefill: stated.prefill,
    noise: spread("noise"),
    runs: runs.length,
    seen: runs.map((run) => seenRun(run, spread("level"))),
  };
}

/**
 * A machine whose step times wander within a run has neighbours, and they are others another day: what is stated of any
 * machine, and what this one was seen to do. Six runs of one vLLM on a machine that others loaded wandered by 10 to 29 %
 * and lay up to a factor of 2 apart, two on one at rest by 3 to 7 % and lay 3 to 10 % apart. 0 stands for no other run.
 */
function statedLevel(stated: number, wander: number): number {
  return stated === 0 ? 0 : Math.min(APART_MAX, Math.hypot(stated, wander));
}

/** A run too short to show its level may lie wherever another one may. */
export function seenRun(
  { level, levelError, delay }: Pick<RunDeviation, "level" | "levelError" | "delay">,
  spread: number,
): SeenRun {
  const known = Number.isFinite(level) && Number.isFinite(levelError);
  return {
    level: known ? rounded(Math.min(APART_MAX, Math.max(-APART_MAX, level))) : 0,
    error: known ? rounded(Math.min(APART_MAX, levelError)) : spread,
    ...(Number.isFinite(delay) && { delay: rounded(Math.min(APART_MAX, Math.max(-APART_MAX, delay))) }),
  };
}

function rounded(value: number): number {
  return Math.round(1e4 * value) / 1e4;
}

/** Of those that are known; 0 of none. */
function meanSquare(errors: readonly number[]): number {
  const known = errors.filter(Number.isFinite);
  return known.length === 0 ? 0 : meanOf(known.map((error) => error ** 2));
}
