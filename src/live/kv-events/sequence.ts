/** What a message's number means: the next one; one that was there before; some between are missing; another publisher. */
export type Place = "next" | "seen" | "gap" | "restarted";

/**
 * The order of one publisher's messages: numbers count up from 0 by one, times never go back. A number that was there
 * before with a time that was not is another publisher's, whose engine was started anew.
 */
export class Sequence {
  /** Number of the next message; 0 before the first. */
  expected = 0;
  /** Time of the last one, in seconds; -Infinity before the first. */
  seconds = -Infinity;
  /** Whether a first message was taken: before it, every number is the next one or behind a gap. */
  begun = false;

  placeOf(number: number, seconds: number): Place {
    if (number === this.expected) return "next";
    if (number > this.expected) return "gap";
    return seconds > this.seconds ? "restarted" : "seen";
  }

  take(number: number, seconds: number): void {
    this.expected = number + 1;
    this.seconds = seconds;
    this.begun = true;
  }

  restart(): void {
    this.expected = 0;
    this.seconds = -Infinity;
    this.begun = false;
  }
}

const FLOAT64 = 0xcb;
const SECONDS_AT = 2;
const DOUBLE_BYTES = 8;

/** The first element of a batch, an array; -Infinity where that is no double. */
export function secondsOf(payload: Uint8Array): number {
  if (payload[1] !== FLOAT64 || payload.length < SECONDS_AT + DOUBLE_BYTES) return -Infinity;
  return new DataView(payload.buffer, payload.byteOffset, payload.length).getFloat64(SECONDS_AT);
}
