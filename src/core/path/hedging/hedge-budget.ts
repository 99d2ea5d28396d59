/** How many requests may go to a second endpoint. */
export interface HedgeOptions {
  /** Share of requests in the long run, in [0, 1]. */
  readonly shareMax: number;
  /** Requests beyond that share that may go at once, as when one endpoint becomes slow; there at the start. */
  readonly burst: number;
}

/** Never more than `burst + shareMax * requests` requests go to a second endpoint. */
export class HedgeBudget {
  #options: HedgeOptions;
  #saved: number;

  constructor(options: HedgeOptions) {
    this.#options = options;
    this.#saved = options.burst;
  }

  /** Other bounds from now on; what is saved up beyond the new burst is lost, and none is given. */
  change(options: HedgeOptions): void {
    this.#options = options;
    this.#saved = Math.min(options.burst, this.#saved);
  }

  get allows(): boolean {
    return this.#saved >= 1;
  }

  /** A request was sent. */
  earn(): void {
    const { burst, shareMax } = this.#options;
    this.#saved = Math.min(burst, this.#saved + shareMax);
  }

  spend(): void {
    this.#saved -= 1;
  }
}
