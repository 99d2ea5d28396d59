/** The latest samples of a figure, for a quantile that single ones cannot move far. */
export class RecentQuantile {
  readonly #samples: Float64Array;
  #count = 0;

  /** Keeps at most `size` samples. */
  constructor(size: number) {
    this.#samples = new Float64Array(size);
  }

  get size(): number {
    return Math.min(this.#count, this.#samples.length);
  }

  add(sample: number): void {
    this.#samples[this.#count++ % this.#samples.length] = sample;
  }

  /** The smallest sample that at least the share `q` of all does not exceed; q in (0, 1]. NaN without samples. */
  at(q: number): number {
    const sorted = this.#samples.slice(0, this.size).sort();
    return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? NaN;
  }
}
