import type { EngineConfig } from "#engine/config.ts";
import type { SeenRun, StepDrift, StepResiduals } from "#engine/step-drift.ts";
import { seenRun } from "../recorded/between-runs.ts";
import type { Evidence } from "./evidence.ts";
import { firstTokensOff } from "./first-token-residuals.ts";
import { forcedReplay } from "./forced-replay.ts";
import { parametersOfEngine } from "./parameters.ts";
import { usualLevel } from "../candidate/usual-level.ts";
import { levelsLeft, runSpeeds, speedDrift, windowsByRun } from "./run-speeds.ts";
import { batchError, stepResidualsOf } from "./step-residuals.ts";
import { pooledOf } from "./step-windows.ts";

/** Fewer answers, or windows of time, show nothing of a run's speed. */
const ANSWERS_MIN = 40;
const WINDOWS_MIN = 8;

/** What a run that an engine was not fitted to shows of itself. */
export interface SeenResiduals {
  readonly speed: SeenRun;
  /** How its steps wandered about that speed, its stalls and its late first tokens, in place of those of the runs fitted. */
  readonly own: Pick<StepResiduals, "windowMicros" | "windows" | "batchError" | "firstTokens" | "stalls">;
}

/**
 * How fast the engine was in a run that it was not fitted to, by the times of that run's own answers: one factor on all
 * steps, one on prefill beyond it, one on the delay outside the engine; and what is left of differences then. All else
 * stays as it was fitted. Undefined where it does not show.
 */
export function seenSpeed(evidence: Evidence, engine: EngineConfig): SeenResiduals | undefined {
  if (parametersOfEngine(engine) === undefined || evidence.rows.filter(({ ok }) => ok).length < ANSWERS_MIN)
    return undefined;
  const { stepDrift: _own, ...still } = engine;
  let here: Around = { engine: still, isSeen: false };
  let speeds = speedsOf(evidence, here.engine, 0);
  for (let round = 0; round < SPEED_ROUNDS; round++) {
    const drift = speedDrift(evidence, speeds.levels);
    const around = aroundSteps(evidence, here.engine, drift);
    here = { engine: around.engine, isSeen: here.isSeen || around.isSeen };
    speeds = speedsOf(evidence, here.engine, speeds.levels[0]!);
  }
  const { windows, outcome, answers, levels } = speeds;
  if (windows === undefined) return undefined;
  const [inside = []] = windowsByRun(evidence, windows);
  if (inside.length < WINDOWS_MIN) return undefined;
  const own = stepResidualsOf(evidence, {
    parameters: parametersOfEngine(here.engine)!,
    errors: {},
    heldOutError: NaN,
    betweenRuns: undefined,
    speeds: [0],
    replayed: () => outcome,
  });
  if (own === undefined) return undefined;
  const pooled = pooledOf(windows);
  const [left = 0] = levelsLeft(evidence, outcome, new Float64Array(evidence.rows.length));
  const level = levels[0]! + left / answers[0]! - usualLevel(own);
  const levelError = batchError(inside.map((w) => pooled[w]!)) / answers[0]!;
  if (!Number.isFinite(level) || !Number.isFinite(levelError)) return undefined;
  const { windowMicros, windows: wander, batchError: tilt, firstTokens, stalls } = own;
  const of = (known: (engine: EngineConfig) => number) => {
    const [seen, fitted] = [known(here.engine), known(engine)];
    if (!here.isSeen || !(seen > 0)) return {};
    return fitted > 0 ? { multiple: Math.log(seen / fitted) } : { multiple: 0, micros: seen };
  };
  const [delay, prefill] = [of(delayOf), of(prefillOf)];
  return {
    speed: {
      ...seenRun({ level, levelError, delay: NaN }, 0),
      delay: delay.multiple,
      prefill: prefill.multiple,
      delayMicros: delay.micros,
      perPrefillTokenMicros: prefill.micros,
    },
    own: { windowMicros, windows: wander, batchError: tilt, firstTokens, stalls },
  };
}

const SPEED_ROUNDS = 2;

function speedsOf(evidence: Evidence, engine: EngineConfig, start: number) {
  return runSpeeds(evidence, (stepDrift) => forcedReplay(evidence, { ...engine, stepDrift }), [start], true);
}

/** An engine, and whether first tokens showed its delay. */
interface Around {
  readonly engine: EngineConfig;
  readonly isSeen: boolean;
}

/**
 * Both may be off by a factor: a replay with another value shows how far off that one is. A fit to a queue alone may have
 * found none of them, and then what is seen is bounded by nothing but itself.
 */
const AROUND_ROUNDS = 3;
const LEAST_PART = 0.1;
const PREFILL_MOVE = 2;

/** The engine with the delay outside it and the prefill rate that first tokens show at this speed. */
function aroundSteps(evidence: Evidence, engine: EngineConfig, drift: StepDrift | undefined): Around {
  let here = engine;
  const firstDelay = delayOf(engine);
  for (let round = 0; round < AROUND_ROUNDS; round++) {
    const outcome = forcedReplay(evidence, { ...here, stepDrift: drift });
    const factor = drift?.factors[0] ?? 1;
    const times = parametersOfEngine(here)!;
    const alone = (tokens: number) =>
      times.delayMicros + factor * (times.baseMicros + times.perPrefillMicros + tokens * times.perPrefillTokenMicros);
    const { later, perToken } = firstTokensOff(evidence, outcome, alone);
    if (!Number.isFinite(later)) return { engine: here, isSeen: round > 0 };
    const delay = delayOf(here);
    const seenDelay = Math.max(firstDelay > 0 ? LEAST_PART * delay : 0, delay + later);
    here = withTimes(here, seenDelay, seenRate(prefillOf(here), (perToken ?? 0) / factor));
  }
  return { engine: here, isSeen: true };
}

/** Microseconds a prefilled token where it takes so many more than this rate. */
function seenRate(rate: number, more: number): number {
  return Math.max(rate / PREFILL_MOVE, rate + more);
}

function delayOf({ queueDelay }: EngineConfig): number {
  return queueDelay.baseMicros;
}

function prefillOf({ stepTime }: EngineConfig): number {
  return stepTime.kind === "coefficients" ? stepTime.perPrefillTokenMicros : 0;
}

function withTimes(engine: EngineConfig, baseMicros: number, perPrefillTokenMicros: number): EngineConfig {
  const { stepTime, queueDelay } = engine;
  return {
    ...engine,
    queueDelay: { ...queueDelay, baseMicros },
    stepTime: stepTime.kind === "coefficients" ? { ...stepTime, perPrefillTokenMicros } : stepTime,
  };
}
