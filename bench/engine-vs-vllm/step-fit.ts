import type { BatchShape } from "#engine/step-time/batch-shape.ts";
import type { CoefficientSpec } from "#engine/step-time/coefficients.ts";
import { fitLinear } from "#engine/fit/linear-fit.ts";

/** A step that was seen: what it computed, and how long it took. */
export interface StepSample {
  readonly shape: Readonly<BatchShape>;
  readonly micros: number;
}

export interface StepFit {
  readonly stepTime: CoefficientSpec;
  /** Part of the steps that were believed, in [0, 1]. */
  readonly kept: number;
}

/**
 * Coefficients from measured steps. The context of decodes is not among them: in one workload it grows with their
 * number, and a fit cannot distinguish the two.
 */
export function fitSteps(samples: readonly StepSample[]): StepFit {
  const rows = samples.map(({ shape }) => [
    1,
    shape.prefillTokens,
    shape.decodeSequences,
    shape.prefillSequences,
    shape.prefillPairsTwice / 2,
  ]);
  const { coefficients, kept } = fitLinear(
    rows,
    samples.map(({ micros }) => micros),
    "inverse-expected",
  );
  const [base = 0, token = 0, decode = 0, prefill = 0, pair = 0] = coefficients;
  const stepTime: CoefficientSpec = {
    kind: "coefficients",
    baseMicros: base,
    perPrefillTokenMicros: token,
    perDecodeMicros: decode,
    perPrefillMicros: prefill,
    perPrefillPairMicros: pair,
  };
  return { stepTime, kept };
}
