import type { Micros } from "./units.ts";

/** What a request is promised; a target that is left out always holds. */
export interface Slo {
  /** From the decision to the first token, above 0. */
  readonly ttftMicros?: Micros;
  /** Mean time of a token after the first, above 0. */
  readonly tpotMicros?: Micros;
}

/** Of the targets that there are; undefined where there is none. */
export function sloWith(ttftMicros: Micros | undefined, tpotMicros: Micros | undefined): Slo | undefined {
  if (ttftMicros === undefined && tpotMicros === undefined) return undefined;
  return { ...(ttftMicros !== undefined && { ttftMicros }), ...(tpotMicros !== undefined && { tpotMicros }) };
}
