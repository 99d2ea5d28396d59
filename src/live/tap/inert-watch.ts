import type { AttemptWatch } from "../keeper/attempt-watch.ts";

/** Judges nothing: whether another router hangs is for those to find who wait for it. */
export const INERT: AttemptWatch = {
  isHung: () => false,
  isDraining: () => false,
  answered: () => {},
  took: () => {},
  waits: () => {},
  stoodStillUntil: 0,
  sweepBegins: () => {},
  sweepEnds: () => {},
};
