import type { BetweenRuns } from "#engine/step-drift.ts";
import { sizedEngine } from "#cli/calibrate/engine-sizes.ts";
import { evidenceOf } from "#shadow/calibrate/evidence.ts";
import { seenSpeed } from "#shadow/calibrate/seen-speed.ts";
import { BETWEEN_RUNS_STATED, betweenRunsOf } from "#shadow/recorded/between-runs.ts";
import type { Fitted, NamedRun } from "./ask.ts";

/** How far a run lay from an engine that was fitted to one of another session, as logarithms. */
export interface Apart {
  /** Of both runs. */
  readonly sessions: readonly [string, string];
  readonly level: number;
  readonly delay: number | undefined;
  /** Spread of step times within the run that was fitted to. */
  readonly wander: number;
}

export function apartOf(source: NamedRun, fitted: Fitted, target: NamedRun): Apart | undefined {
  const { residuals } = fitted;
  if (residuals === undefined) return undefined;
  const { engine } = sizedEngine(fitted.engine, target.run, target.flags, false);
  const seen = seenSpeed(evidenceOf(target.run, engine.blockTokens), engine)?.speed;
  if (seen === undefined) return undefined;
  const sessions = [sessionOf(source), sessionOf(target)] as const;
  return { sessions, level: seen.level, delay: seen.delay, wander: wanderOf(fitted) };
}

/** The folder that a run's is in. */
export function sessionOf({ name }: NamedRun): string {
  return name.slice(0, name.lastIndexOf("/"));
}

/** What would be stated of another session by all pairs of sessions but those with this one; undefined where none is left. */
export function priorWithout(session: string, pairs: readonly Apart[]): BetweenRuns | undefined {
  const left = pairs.filter(({ sessions }) => !sessions.includes(session));
  if (left.length === 0) return undefined;
  const spread = (squares: readonly number[]) =>
    squares.length === 0 ? undefined : Math.sqrt(squares.reduce((sum, square) => sum + square, 0) / squares.length);
  const level = spread(left.map((pair) => Math.max(0, pair.level ** 2 - pair.wander ** 2)))!;
  const delay = spread(left.flatMap((pair) => (pair.delay === undefined ? [] : [pair.delay ** 2])));
  return { ...BETWEEN_RUNS_STATED, level, delay: delay ?? BETWEEN_RUNS_STATED.delay };
}

/** The engine as if that had been stated when it was fitted to one run. */
export function withPrior(fitted: Fitted, prior: BetweenRuns): Fitted {
  const { residuals } = fitted;
  if (residuals === undefined) return fitted;
  return { ...fitted, residuals: { ...residuals, betweenRuns: betweenRunsOf([], prior, wanderOf(fitted)) } };
}

function wanderOf({ residuals }: Fitted): number {
  const { level = 0 } = residuals?.betweenRuns ?? {};
  return Math.sqrt(Math.max(0, level ** 2 - BETWEEN_RUNS_STATED.level ** 2));
}
