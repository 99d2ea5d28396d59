/** What the page is made of. */
export interface MetricsPageOptions {
  readonly render: () => Promise<string>;
  /** Milliseconds that only grow. */
  readonly now: () => number;
}

/** Whoever asks more often gets the page of before. */
export const PAGE_MILLIS_MIN = 1_000;

/**
 * The metrics page, which everybody may ask for as often as they like: it is made at most once in `PAGE_MILLIS_MIN`, and
 * once for all that ask while it is being made.
 */
export class MetricsPage {
  readonly #options: MetricsPageOptions;
  #page: Promise<string> | undefined;
  #madeAt = -Infinity;

  constructor(options: MetricsPageOptions) {
    this.#options = options;
  }

  /** A page that failed is made anew for the next who asks. */
  text(): Promise<string> {
    const now = this.#options.now();
    if (this.#page !== undefined && now - this.#madeAt < PAGE_MILLIS_MIN) return this.#page;
    this.#madeAt = Infinity;
    const page = this.#options.render().then(
      (text) => {
        this.#madeAt = this.#options.now();
        return text;
      },
      (error: unknown) => {
        this.#page = undefined;
        throw error;
      },
    );
    this.#page = page;
    return page;
  }
}
