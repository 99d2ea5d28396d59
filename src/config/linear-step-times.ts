import type { StepTimes } from "#core/endpoint/step-times.ts";
import type { EngineConfig } from "#engine/config.ts";
import { addDecode, addPrefill, emptyShape } from "#engine/step-time/batch-shape.ts";
import { createStepTime } from "#engine/step-time/create-step-time.ts";

/** Where the lines are drawn: sizes that serving is usually between. */
const SEQUENCES = 32;
const CONTEXT_TOKENS = [512, 4_096] as const;
const PREFILL_TOKENS = [256, 2_048] as const;
/** The engine's step times are above this, whatever the lines give. */
const MICROS_MIN = 0.001;

/**
 * An engine's step times as the linear model that a router predicts with: slopes between two batches each, the gap
 * between steps included. Exact where the engine's own are linear. Undefined where they are a record of measured steps,
 * which does not depend on what a step computes.
 */
export function linearStepTimes({ stepTime, stepGap, batchTokensMax }: EngineConfig): StepTimes | undefined {
  const time = createStepTime(stepTime);
  if (!time.stateless) return undefined;
  const decodes = (sequences: number, context: number): number => {
    const shape = emptyShape();
    for (let i = 0; i < sequences; i++) addDecode(shape, context);
    return time.micros(shape) + stepGap.baseMicros + sequences * stepGap.perDecodeMicros;
  };
  const prefill = (tokens: number): number => {
    const shape = emptyShape();
    addPrefill(shape, 0, tokens);
    return time.micros(shape);
  };
  const [short, long] = CONTEXT_TOKENS;
  const [few, many] = PREFILL_TOKENS;
  const one = decodes(1, short);
  const contextTokenMicros = (decodes(SEQUENCES, long) - decodes(SEQUENCES, short)) / (SEQUENCES * (long - short));
  const perSequence = (decodes(SEQUENCES, short) - one) / (SEQUENCES - 1);
  return {
    stepMicros: Math.max(MICROS_MIN, one - perSequence),
    prefillTokenMicros: Math.max(MICROS_MIN, (prefill(many) - prefill(few)) / (many - few)),
    sequenceMicros: Math.max(0, perSequence - contextTokenMicros * short),
    contextTokenMicros: Math.max(0, contextTokenMicros),
    stepTokensMax: batchTokensMax,
  };
}
