import type { Micros } from "./units.ts";

/** What a request is promised; a target that is left out always holds. */
export interface Slo {
  /** From the decision to the first token, above 0. */
  readonly ttftMicros?: Micros;
  /** Mean time of a token after the first, above 0. */
  readonly tpotMicros?: Micros;
}
