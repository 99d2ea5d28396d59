import type { FirstTokenResiduals } from "#engine/step-drift.ts";
import type { Evidence } from "./evidence.ts";
import type { ForcedOutcome } from "./forced-replay.ts";

/** Kept at most, evenly by rank. */
const KEPT_MAX = 512;
/** Fewer tell nothing of a tail. */
const REQUESTS_MIN = 40;
/** Part of the requests, those of the nearest predicted times, whose mean is no chance but the model's error. */
const LOCAL_PART = 0.25;

/**
 * How much later than replayed single requests had their first token, by how long the replay has it take: pauses of an
 * engine and of the way to it, which the means of many steps do not hold. What requests of about the same time have in
 * common is taken off. Undefined where there are too few.
 */
export function firstTokenResidualsOf({ rows }: Evidence, outcome: ForcedOutcome): FirstTokenResiduals | undefined {
  const seen = rows.flatMap(({ ok, ttftMicros }, i) => {
    const predicted = outcome.ttftMicros[i]!;
    return ok && predicted > 0 ? [{ predicted, later: ttftMicros - predicted }] : [];
  });
  if (seen.length < REQUESTS_MIN) return undefined;
  seen.sort((a, b) => a.predicted - b.predicted);
  const local = localMeans(seen.map(({ later }) => later));
  const kept = Math.min(KEPT_MAX, seen.length);
  const places = Array.from({ length: kept }, (_, k) => Math.floor(((k + 0.5) * seen.length) / kept));
  return {
    predictedMicros: places.map((i) => Math.round(seen[i]!.predicted)),
    laterMicros: places.map((i) => Math.round(seen[i]!.later - local[i]!)),
  };
}

/** Mean of the values around each place. */
function localMeans(values: readonly number[]): number[] {
  const sums = [0];
  for (const value of values) sums.push(sums.at(-1)! + value);
  const half = Math.ceil((LOCAL_PART * values.length) / 2);
  return values.map((_, i) => {
    const [from, to] = [Math.max(0, i - half), Math.min(values.length, i + half + 1)];
    return (sums[to]! - sums[from]!) / (to - from);
  });
}
