import { nameHash, randomFor } from "#core/base/random.ts";
import type { StepDrift } from "#engine/step-drift.ts";
import type { BatchShape } from "#engine/step-time/batch-shape.ts";
import { createStepTime, type StepTimeSpec } from "#engine/step-time/create-step-time.ts";

export interface MeasuredStep {
  readonly shape: Readonly<BatchShape>;
  readonly micros: number;
}

/**
 * How many times as long as the model has it a run's steps took, drawn anew in rows of consecutive ones (a moving-block
 * bootstrap; one by one for rows of 1): what another run of the same engine might have met. Each factor holds for a mean
 * step's time.
 */
export function resampledResiduals(
  steps: readonly MeasuredStep[],
  spec: StepTimeSpec,
  rowSteps: number,
  seed: number,
): StepDrift {
  const model = createStepTime(spec);
  const factors = steps.map(({ shape, micros }) => micros / Math.max(1, model.micros(shape)));
  const random = randomFor(seed, nameHash("step-residuals"));
  const drawn = new Float64Array(2 * factors.length);
  let from = 0;
  for (let i = 0; i < drawn.length; i++) {
    if (i % rowSteps === 0) from = random.below(factors.length);
    drawn[i] = factors[(from + (i % rowSteps)) % factors.length]!;
  }
  const windowMicros = Math.round(steps.reduce((sum, { micros }) => sum + micros, 0) / steps.length);
  return { windowMicros, factors: drawn };
}
