import { nameHash, type Random, randomFor } from "#core/base/random.ts";
import type { Micros } from "#core/base/units.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { SeenRun, StepResiduals } from "#engine/step-drift.ts";
import { spreadNormal } from "../figure/spread-normal.ts";
import { stallDraw } from "./stall-draw.ts";
import { usualLevel } from "./usual-level.ts";

/** Windows of a replica's drift at most; a longer run meets them again. */
const WINDOWS_MAX = 4096;
/** Endpoints that stand still each at its own times; the first ones stand for the others. */
const ENGINES_APART = 8;

/** An engine's configuration by the number of its endpoint. */
export type EngineOf = (endpoint: number) => EngineConfig;

/**
 * The engines of one replica of a simulation: how fast they really are is drawn anew from what the calibration left to
 * chance. The level of all step times, the delay outside the engine and the prefill rate are drawn once; the drift is
 * the recorded residuals in another order, by blocks of neighbours, so that slow swings stay slow, and at the same
 * moments for all endpoints, so that what they have in common stays so. Stalls come by chance, as often and as long as
 * some were seen. What another run is off by (betweenRuns) widens the three that are drawn once, and what this one is
 * known to have been off by (thisRun) moves them. It depends on the seed and the replica alone: all candidates meet the
 * same. Replica 0 draws nothing: see usualEngines.
 */
export function replicaEngines(
  fitted: EngineConfig,
  residuals: StepResiduals | undefined,
  seed: number,
  replica: number,
  spanMicros: Micros,
): EngineOf {
  if (residuals === undefined) return () => fitted;
  const engine = withSeen(fitted, residuals.thisRun);
  if (replica === 0) return usualEngines(engine, residuals);
  const random = randomFor(seed, nameHash("replica") + replica);
  const { windowMicros, windows, levelError, delayError, prefillError, batchError, betweenRuns, thisRun } = residuals;
  const level =
    (thisRun?.level ?? 0) + Math.hypot(levelError, betweenRuns?.level ?? 0) * spreadNormal("level", 2, seed, replica);
  const delay = Math.exp(
    (thisRun?.delay ?? 0) + Math.hypot(delayError, betweenRuns?.delay ?? 0) * spreadNormal("delay", 5, seed, replica),
  );
  const prefill = Math.exp(
    (thisRun?.prefill ?? 0) +
      Math.hypot(prefillError, betweenRuns?.prefill ?? 0) * spreadNormal("prefill", 7, seed, replica),
  );
  const tilt = {
    decodes: batchError?.decodes ?? 0,
    micros: (batchError?.perDecodeMicros ?? 0) * spreadNormal("batch", 3, seed, replica),
  };
  const recorded = windows[0]?.length ?? 0;
  const wanted = Math.min(WINDOWS_MAX, Math.max(recorded, Math.ceil((1.25 * spanMicros) / windowMicros)));
  const order = blockOrder(recorded, wanted, random);
  const drawn = {
    ...engine,
    queueDelay: delayed(engine.queueDelay, delay),
    stepTime: stepTimeOf(engine, prefill, tilt),
  };
  const stallsAt = stallDraw(residuals, wanted * windowMicros, seed, replica);
  const configs = Array.from(
    { length: stallsAt === undefined ? windows.length : ENGINES_APART },
    (_, e): EngineConfig => {
      const logs = windows[e % windows.length]!;
      const factors = Float64Array.from(order, (w) => rounded(Math.exp(level + logs[w]!)));
      return { ...drawn, stepDrift: { windowMicros, factors, stalls: stallsAt?.(e) } };
    },
  );
  return (endpoint) => configs[endpoint % configs.length] ?? drawn;
}

/**
 * The engines without noise, each at its usual speed: that of the run in question where it is known, else that of the runs
 * that were fitted.
 */
function usualEngines(engine: EngineConfig, { windows, stalls, thisRun }: StepResiduals): EngineOf {
  const queueDelay = delayed(engine.queueDelay, Math.exp(thisRun?.delay ?? 0));
  const stepTime = stepTimeOf(engine, Math.exp(thisRun?.prefill ?? 0), { decodes: 0, micros: 0 });
  const configs = windows.map((logs): EngineConfig => {
    const factor = rounded(Math.exp((thisRun?.level ?? 0) + usualLevel({ windows: [logs], stalls })));
    const stepDrift = { windowMicros: Number.MAX_SAFE_INTEGER, factors: Float64Array.of(factor) };
    return { ...engine, queueDelay, stepTime, ...(factor !== 1 && { stepDrift }) };
  });
  return (endpoint) => configs[endpoint % configs.length] ?? { ...engine, queueDelay, stepTime };
}

/** What the fit found none of, as the run in question shows it. */
function withSeen(engine: EngineConfig, thisRun: SeenRun | undefined): EngineConfig {
  const { delayMicros, perPrefillTokenMicros } = thisRun ?? {};
  const { queueDelay, stepTime } = engine;
  return {
    ...engine,
    ...(delayMicros !== undefined && { queueDelay: { ...queueDelay, baseMicros: delayMicros } }),
    ...(perPrefillTokenMicros !== undefined &&
      stepTime.kind === "coefficients" && { stepTime: { ...stepTime, perPrefillTokenMicros } }),
  };
}

/** Positions in the recorded series: blocks of neighbours, about as long as the root of its length. */
function blockOrder(recorded: number, wanted: number, random: Random): Int32Array {
  const order = new Int32Array(wanted);
  const length = Math.max(1, Math.ceil(Math.sqrt(recorded)));
  for (let at = 0; at < wanted; at += length) {
    const start = random.below(recorded - length + 1);
    for (let i = 0; i < length && at + i < wanted; i++) order[at + i] = start + i;
  }
  return order;
}

function delayed({ baseMicros, perPromptTokenMicros }: EngineConfig["queueDelay"], factor: number) {
  return { baseMicros: baseMicros * factor, perPromptTokenMicros: perPromptTokenMicros * factor };
}

/**
 * Other step times than coefficients have no prefill rate and no decode of their own; their level is drawn all the
 * same.
 */
function stepTimeOf(
  { stepTime }: EngineConfig,
  prefill: number,
  tilt: { readonly decodes: number; readonly micros: number },
): EngineConfig["stepTime"] {
  if (stepTime.kind !== "coefficients") return stepTime;
  const { baseMicros, perPrefillTokenMicros, perDecodeMicros } = stepTime;
  // Neither part falls below nothing.
  const more = Math.max(
    -perDecodeMicros,
    tilt.decodes > 0 ? Math.min(tilt.micros, baseMicros / tilt.decodes) : tilt.micros,
  );
  return {
    ...stepTime,
    baseMicros: baseMicros - more * tilt.decodes,
    perPrefillTokenMicros: perPrefillTokenMicros * prefill,
    perDecodeMicros: perDecodeMicros + more,
  };
}

/** So that a last bit of exp does not reach a step. */
function rounded(factor: number): number {
  return Math.round(factor * 1e9) / 1e9;
}
