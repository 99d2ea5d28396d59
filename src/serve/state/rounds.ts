export interface RoundsOptions {
  /** Takes what is there and brings what is here. Rejects as the store does. */
  readonly round: () => Promise<void>;
  /** What could not be read or written, in words; once, until it is `recovered`. */
  readonly failed: (detail: string) => void;
  readonly recovered: () => void;
}

/** Exchanges something with a store in rounds, one after the other. */
export class Rounds {
  readonly #options: RoundsOptions;
  #running: Promise<string> | undefined;
  #next: Promise<string> | undefined;
  #problem = "";
  #asked = false;

  constructor(options: RoundsOptions) {
    this.#options = options;
  }

  /** A round is over, however it ended. */
  get asked(): boolean {
    return this.#asked;
  }

  /** What is wrong since the last round; "" where nothing is. */
  get problem(): string {
    return this.#problem;
  }

  /** Never rejects. Resolves with "" when a round that began at or after the call is over, else with what is wrong. */
  sync(): Promise<string> {
    if (this.#running === undefined) return (this.#running = this.#round());
    return (this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      return (this.#running = this.#round());
    }));
  }

  async #round(): Promise<string> {
    try {
      await this.#options.round();
      if (this.#problem !== "") this.#options.recovered();
      this.#problem = "";
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      if (this.#problem === "") this.#options.failed(problem);
      this.#problem = problem;
    }
    this.#asked = true;
    if (this.#next === undefined) this.#running = undefined;
    return this.#problem;
  }
}
