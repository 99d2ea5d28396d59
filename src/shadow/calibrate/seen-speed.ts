import type { EngineConfig } from "#engine/config.ts";
import type { SeenRun, StepResiduals } from "#engine/step-drift.ts";
import { seenRun } from "../recorded/between-runs.ts";
import type { Evidence } from "./evidence.ts";
import { firstTokenDeviation } from "./first-token-residuals.ts";
import { forcedReplay } from "./forced-replay.ts";
import { parametersOfEngine } from "./parameters.ts";
import { usualLevel } from "../candidate/usual-level.ts";
import { levelsLeft, runSpeeds, windowsByRun } from "./run-speeds.ts";
import { batchError } from "./step-residuals.ts";
import { pooledOf } from "./step-windows.ts";

/** Fewer answers, or windows of time, show nothing of a run's speed. */
const ANSWERS_MIN = 40;
const WINDOWS_MIN = 8;

/**
 * How fast the engine was in a run that it was not fitted to, by the times of that run's own answers: one factor on all
 * steps, and one on the delay outside the engine. Everything else stays as it was fitted. Undefined where it does not show.
 */
export function seenSpeed(evidence: Evidence, engine: EngineConfig, residuals: StepResiduals): SeenRun | undefined {
  const parameters = parametersOfEngine(engine);
  if (parameters === undefined || evidence.rows.filter(({ ok }) => ok).length < ANSWERS_MIN) return undefined;
  const { stepDrift: _own, ...still } = engine;
  const found = runSpeeds(evidence, (stepDrift) => forcedReplay(evidence, { ...still, stepDrift }), [0], true);
  const { windows, outcome, answers } = found;
  if (windows === undefined) return undefined;
  const [inside = []] = windowsByRun(evidence, windows);
  if (inside.length < WINDOWS_MIN) return undefined;
  const pooled = pooledOf(windows);
  const [left = 0] = levelsLeft(evidence, outcome, new Float64Array(evidence.rows.length));
  const level = found.levels[0]! + left / answers[0]! - usualLevel(residuals);
  const levelError = batchError(inside.map((w) => pooled[w]!)) / answers[0]!;
  if (!Number.isFinite(level) || !Number.isFinite(levelError)) return undefined;
  const { delay } = firstTokenDeviation(evidence, outcome, parameters, 0, Infinity);
  return seenRun({ level, levelError, delay }, 0);
}
