/**
 * Keeps retries from multiplying an overload: each request earns a fraction of a retry, each retry spends one, and no
 * more than `burst` can be saved up.
 */
export class RetryBudget {
  readonly #ratio: number;
  readonly #burst: number;
  #saved: number;

  constructor(ratio: number, burst: number) {
    this.#ratio = ratio;
    this.#burst = burst;
    this.#saved = burst;
  }

  earn(): void {
    this.#saved = Math.min(this.#burst, this.#saved + this.#ratio);
  }

  /** Spends a retry; false when none is left. */
  spend(): boolean {
    if (this.#saved < 1) return false;
    this.#saved -= 1;
    return true;
  }

  /** Gives a retry back that could not be made. */
  refund(): void {
    this.#saved += 1;
  }
}
