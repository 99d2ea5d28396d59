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
  #room = 0;
  #carried = 0;
  #servedUntilWell = 0;

  /** It gets nothing. */
  get isOut(): boolean {
    return this.#room === 0;
  }

  /** From now on it gets a few, until so many were served, at least 1. */
  letBack(servedUntilWell: number, requestsInFlight: number): void {
    this.#room = 1;
    this.#servedUntilWell = servedUntilWell;
    this.#carried = requestsInFlight;
  }

  allows(requestsInFlight: number): boolean {
    this.#carried = Math.min(this.#carried, requestsInFlight);
    return requestsInFlight - this.#carried < this.#room;
  }

  /** It sent a first token or a whole answer, and is well after enough of them. */
  served(): Standing {
    if (this.isOut) return "hung";
    this.#servedUntilWell--;
    if (this.#servedUntilWell <= 0) return "well";
    this.#room = widened(this.#room);
    return "returning";
  }
}
