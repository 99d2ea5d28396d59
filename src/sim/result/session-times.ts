import type { Micros } from "#core/base/units.ts";

/** The requests of several sessions, a row each. */
export interface SessionRows {
  readonly length: number;
  /** Number of a row's session below `sessions`; -1 for none. */
  readonly session: ArrayLike<number>;
  readonly sessions: number;
  /** When it came, and how long after that its client had the last token; NaN for never. */
  readonly arrivalAt: ArrayLike<Micros>;
  readonly e2e: ArrayLike<Micros>;
}

/**
 * Session completion times: from the arrival of each session's first request to the end of its last answer, what its client
 * does meanwhile included. NaN for one of which a request got no whole answer.
 */
export function sessionTimes({ length, session, sessions, arrivalAt, e2e }: SessionRows): Float64Array {
  const begin = new Float64Array(sessions).fill(Infinity);
  const end = new Float64Array(sessions).fill(-Infinity);
  for (let row = 0; row < length; row++) {
    const number = session[row]!;
    if (number < 0) continue;
    begin[number] = Math.min(begin[number]!, arrivalAt[row]!);
    // Of a sum with NaN the maximum is NaN, and stays so.
    end[number] = Math.max(end[number]!, arrivalAt[row]! + e2e[row]!);
  }
  return end.map((at, number) => at - begin[number]!);
}
