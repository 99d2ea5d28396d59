import type { Micros } from "../base/units.ts";

/** What one subject has used of a limit, for a router that starts. */
export interface LimitWindow {
  /** As subjectOf names it. */
  readonly subject: string;
  /** How long the window that is counted now has lasted; 0 for limits whose windows slide. Routers' clocks differ. */
  readonly passedMicros: Micros;
  /** Since it was counted so; nothing was used meanwhile. 0 where it is left out. */
  readonly ageMicros?: Micros;
  /** What they mean is the limit's own; each whole and at least 0. */
  readonly counts: readonly number[];
}
