import type { BatchShape } from "./batch-shape.ts";
import type { StepTime } from "./step-time.ts";

/**
 * Linear in what the step computes:
 *
 *   step = base + perPrefillToken * prefillTokens + perDecode * max(0, decodes - decodesFree)    (beta0, beta1, beta2)
 *        + perSequence * (prefills + decodes) + perPrefill * prefills
 *        + perDecodeContextToken * (tokens before each decode, summed)
 *        + perPrefillPair * (pairs of a prefilled token and one before it)
 *
 * All in microseconds. The first three are the usual coefficients; the others are 0 unless a fit gave them.
 */
export interface CoefficientSpec {
  readonly kind: "coefficients";
  readonly baseMicros: number;
  readonly perPrefillTokenMicros: number;
  readonly perDecodeMicros: number;
  readonly decodesFree?: number;
  readonly perSequenceMicros?: number;
  readonly perPrefillMicros?: number;
  readonly perDecodeContextTokenMicros?: number;
  readonly perPrefillPairMicros?: number;
}

/** Step time as a linear function of the batch's shape. */
export class CoefficientStepTime implements StepTime {
  readonly stateless = true;
  readonly #base: number;
  readonly #perPrefillToken: number;
  readonly #perDecode: number;
  readonly #decodesFree: number;
  readonly #perSequence: number;
  readonly #perPrefill: number;
  readonly #perDecodeContext: number;
  readonly #perPrefillPair: number;

  constructor(spec: CoefficientSpec) {
    this.#base = spec.baseMicros;
    this.#perPrefillToken = spec.perPrefillTokenMicros;
    this.#perDecode = spec.perDecodeMicros;
    this.#decodesFree = spec.decodesFree ?? 0;
    this.#perSequence = spec.perSequenceMicros ?? 0;
    this.#perPrefill = spec.perPrefillMicros ?? 0;
    this.#perDecodeContext = spec.perDecodeContextTokenMicros ?? 0;
    this.#perPrefillPair = spec.perPrefillPairMicros ?? 0;
  }

  micros(shape: Readonly<BatchShape>): number {
    if (shape.prefillSequences + shape.decodeSequences === 0) return 0;
    return (
      this.#base +
      this.#perPrefillToken * shape.prefillTokens +
      this.#perDecode * Math.max(0, shape.decodeSequences - this.#decodesFree) +
      this.#perSequence * (shape.prefillSequences + shape.decodeSequences) +
      this.#perPrefill * shape.prefillSequences +
      this.#perDecodeContext * shape.decodeContextTokens +
      this.#perPrefillPair * (shape.prefillPairsTwice / 2)
    );
  }
}
