/** A prior guess of one coefficient, as strong as `weight` samples whose feature is 1. */
export interface Prior {
  readonly value: number;
  readonly weight: number;
}

/**
 * Coefficients of a linear model, after each sample, by recursive least squares with exponential forgetting:
 *
 *     gain = P x / (keep + x' P x),  b += gain * (y - x' b),  P = (P - gain x' P) / keep
 *
 * P begins as the diagonal of 1 / prior weight. What forgetting takes of the evidence for a feature that does not vary
 * would grow without end, so P is scaled back to where it began once its largest diagonal is above that.
 */
export class LeastSquares {
  readonly coefficients: number[];
  readonly #keep: number;
  readonly #p: number[][];
  readonly #spreadMax: readonly number[];
  readonly #px: number[];

  /** `keep` in (0, 1]: weight of a sample against the one after it. */
  constructor(priors: readonly Prior[], keep: number) {
    this.coefficients = priors.map(({ value }) => value);
    this.#keep = keep;
    this.#spreadMax = priors.map(({ weight }) => 1 / weight);
    this.#p = priors.map((_, i) => priors.map((__, j) => (i === j ? this.#spreadMax[i]! : 0)));
    this.#px = priors.map(() => 0);
  }

  at(features: readonly number[]): number {
    let sum = 0;
    for (let i = 0; i < features.length; i++) sum += features[i]! * this.coefficients[i]!;
    return sum;
  }

  add(features: readonly number[], y: number): void {
    const p = this.#p;
    const px = this.#px;
    let spread = this.#keep;
    for (let i = 0; i < px.length; i++) {
      px[i] = 0;
      for (let j = 0; j < px.length; j++) px[i]! += p[i]![j]! * features[j]!;
      spread += px[i]! * features[i]!;
    }
    const error = y - this.at(features);
    for (let i = 0; i < px.length; i++) {
      this.coefficients[i]! += (px[i]! / spread) * error;
      for (let j = 0; j <= i; j++) {
        const value = (p[i]![j]! - (px[i]! * px[j]!) / spread) / this.#keep;
        p[i]![j] = value;
        p[j]![i] = value;
      }
    }
    this.#bound();
  }

  #bound(): void {
    let scale = 1;
    for (let i = 0; i < this.#px.length; i++) scale = Math.min(scale, this.#spreadMax[i]! / this.#p[i]![i]!);
    if (scale >= 1) return;
    for (const row of this.#p) for (let j = 0; j < row.length; j++) row[j]! *= scale;
  }
}
