import type { Micros } from "../base/units.ts";
import type { Speculation } from "./speculation.ts";

/** An endpoint whose events are followed. */
export class FollowedEndpoint {
  /** False where it may hold blocks that were never reported to us. */
  complete: boolean;
  /** Blocks reported since it was followed. */
  reported = 0;
  eventAt: Micros;
  /** Since when it computes and reports nothing; -1 where that is not so. */
  doubtSince: Micros = -1;
  /** In order of insertion, from `#first` on. */
  readonly open: Speculation[] = [];
  #first = 0;
  /** Computed, and not reported whole. */
  awaited: Speculation[] = [];

  constructor(complete: boolean, now: Micros) {
    this.complete = complete;
    this.eventAt = now;
  }

  /** Forgets the speculations that ended and have no open one before them; the last of them, if there are any. */
  dropEnded(): Speculation | undefined {
    const { open } = this;
    let first = this.#first;
    while (first < open.length && open[first]!.ended) first++;
    if (first === this.#first) return undefined;
    const last = open[first - 1];
    this.#first = dropBefore(open, first);
    return last;
  }
}

/**
 * Drops the entries before `first` once they are the larger part: constant work per entry. Returns where the first one
 * stands from then on.
 */
export function dropBefore(entries: unknown[], first: number): number {
  if (first === 0 || 2 * first < entries.length) return first;
  entries.splice(0, first);
  return 0;
}
