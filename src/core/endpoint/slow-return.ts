/** well: takes requests. hung: takes none. returning: takes a few at a time. */
export type Standing = "well" | "hung" | "returning";

/**
 * Requests that an endpoint may have at once of which little is known, after it answered one of the `room` that it could
 * have: those, and twice as many that have yet to be answered.
 */
export function widened(room: number): number {
  return 2 * room + 1;
}

/**
 * How an endpoint is used that was judged hung: not at all, and once it is let back by one request, then by twice as many
 * more with each that it answers, until it has answered enough to be taken for well.
 */
export class SlowReturn {
  /** Requests that it may have in flight beside those that it had as it was let back. */
  #room = Infinity;
  #carried = 0;
  #servedUntilWell = 0;

  get standing(): Standing {
    return this.#room === Infinity ? "well" : this.#room === 0 ? "hung" : "returning";
  }

  suspend(): void {
    this.#room = 0;
  }

  /** Lets it back; after `servedUntilWell` served requests (at least 0) there is no bound any more. */
  resume(servedUntilWell: number, requestsInFlight = 0): void {
    if (this.#room !== 0) return;
    this.#room = servedUntilWell > 0 ? 1 : Infinity;
    this.#servedUntilWell = servedUntilWell;
    this.#carried = requestsInFlight;
  }

  allows(requestsInFlight: number): boolean {
    if (this.#room === Infinity) return true;
    this.#carried = Math.min(this.#carried, requestsInFlight);
    return requestsInFlight - this.#carried < this.#room;
  }

  /** It sent a first token or a whole answer. */
  served(): void {
    if (this.#room === 0 || this.#room === Infinity) return;
    this.#servedUntilWell--;
    this.#room = this.#servedUntilWell > 0 ? widened(this.#room) : Infinity;
  }
}
