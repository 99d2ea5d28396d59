import type { Micros } from "../base/units.ts";

/** What a request's times were expected to be where it was sent; whole microseconds. */
export interface Forecast {
  /** From the decision to the first token. */
  readonly ttftMicros: Micros;
  /** Mean time of a token after the first. */
  readonly tpotMicros: Micros;
  /** TTFT at the candidate with the next best total; absent where there was none, and in older traces. */
  readonly nextTtftMicros?: Micros;
}
