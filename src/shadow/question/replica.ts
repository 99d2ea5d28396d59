import { nameHash, type Random, randomFor } from "#core/random.ts";
import type { Micros } from "#core/units.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { StepResiduals } from "#engine/step-drift.ts";

/** Windows of a replica's drift at most; a longer run meets them again. */
const WINDOWS_MAX = 4096;

/** An engine's configuration by the number of its endpoint. */
export type EngineOf = (endpoint: number) => EngineConfig;

/**
 * The engines of one replica of a simulation: how fast they really are is drawn anew from what the calibration left to
 * chance. The level of all step times, the delay outside the engine and the prefill rate are drawn once; the drift is the
 * recorded residuals in another order, by blocks of neighbours, so that slow swings stay slow, and at the same moments for
 * all endpoints, so that what they have in common stays so. It depends on the seed and the replica alone: all candidates
 * meet the same. Replica 0 is the engine as it was fitted.
 */
export function replicaEngines(
  engine: EngineConfig,
  residuals: StepResiduals | undefined,
  seed: number,
  replica: number,
  spanMicros: Micros,
): EngineOf {
  if (replica === 0 || residuals === undefined) return () => engine;
  const random = randomFor(seed, nameHash("replica") + replica);
  const { windowMicros, windows, levelError, delayError, prefillError } = residuals;
  const level = levelError * normal(random);
  const delay = Math.exp(delayError * normal(random));
  const prefill = Math.exp(prefillError * normal(random));
  const recorded = windows[0]?.length ?? 0;
  const wanted = Math.min(WINDOWS_MAX, Math.max(recorded, Math.ceil((1.25 * spanMicros) / windowMicros)));
  const order = blockOrder(recorded, wanted, random);
  const drawn = { ...engine, queueDelay: delayed(engine.queueDelay, delay), stepTime: prefilled(engine, prefill) };
  const configs = windows.map((logs): EngineConfig => {
    const factors = Float64Array.from(order, (w) => rounded(Math.exp(level + logs[w]!)));
    return { ...drawn, stepDrift: { windowMicros, factors } };
  });
  return (endpoint) => configs[endpoint % configs.length] ?? drawn;
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

/** Other step times than coefficients have no prefill rate of their own; their level is drawn all the same. */
function prefilled({ stepTime }: EngineConfig, factor: number): EngineConfig["stepTime"] {
  if (stepTime.kind !== "coefficients") return stepTime;
  return { ...stepTime, perPrefillTokenMicros: stepTime.perPrefillTokenMicros * factor };
}

/** Standard normal (G. E. P. Box and M. E. Muller, 1958). */
function normal(random: Random): number {
  const radius = Math.sqrt(-2 * Math.log(1 - random.next()));
  return radius * Math.cos(2 * Math.PI * random.next());
}

/** So that a last bit of exp does not reach a step. */
function rounded(factor: number): number {
  return Math.round(factor * 1e9) / 1e9;
}
