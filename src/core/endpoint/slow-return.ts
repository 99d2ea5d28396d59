/** well: takes requests. hung: takes none. returning: takes a few at a time. */
export type Standing = "well" | "hung" | "returning";

/**
 * How an endpoint is used that was judged hung: not at all, and once it is let back one request at a time, then one more
 * with each that it serves, until it has served enough to be taken for well.
 */
export class SlowReturn {
  /** Requests that it may have in flight. */
  #room = Infinity;
  #servedUntilWell = 0;

  get standing(): Standing {
    return this.#room === Infinity ? "well" : this.#room === 0 ? "hung" : "returning";
  }

  suspend(): void {
    this.#room = 0;
  }

  /** Lets it back; after `servedUntilWell` served requests (at least 0) there is no bound any more. */
  resume(servedUntilWell: number): void {
    if (this.#room !== 0) return;
    this.#room = servedUntilWell > 0 ? 1 : Infinity;
    this.#servedUntilWell = servedUntilWell;
  }

  allows(requestsInFlight: number): boolean {
    return requestsInFlight < this.#room;
  }

  /** It sent a first token or a whole answer. */
  served(): void {
    if (this.#room === 0) return;
    this.#room = this.#room < this.#servedUntilWell ? this.#room + 1 : Infinity;
  }
}
