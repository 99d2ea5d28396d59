import type { FirstTokenResiduals } from "#engine/step-drift.ts";
import type { Evidence } from "./evidence.ts";
import type { ForcedOutcome } from "./forced-replay.ts";
import { quantileOf } from "./starting-point.ts";

/** Kept at most, evenly by rank. */
const KEPT_MAX = 512;
/** Fewer tell nothing of a tail. */
const REQUESTS_MIN = 40;
/** Part of the requests, those of the nearest predicted times, whose median is no chance but the model's error. */
const LOCAL_PART = 0.25;

/**
 * How much later than replayed single requests had their first token, by how long the replay has it take: pauses of an
 * engine and of the way to it, which neither the means of many steps nor a robust fit hold. The median of requests of
 * about the same time is taken off, so that half of them come earlier; few and long pauses still move the mean. Undefined
 * where there are too few requests.
 */
export function firstTokenResidualsOf({ rows }: Evidence, outcome: ForcedOutcome): FirstTokenResiduals | undefined {
  const seen = rows.flatMap(({ ok, ttftMicros }, i) => {
    const predicted = outcome.ttftMicros[i]!;
    return ok && predicted > 0 ? [{ predicted, later: ttftMicros - predicted }] : [];
  });
  if (seen.length < REQUESTS_MIN) return undefined;
  seen.sort((a, b) => a.predicted - b.predicted);
  const count = Math.min(KEPT_MAX, seen.length);
  const kept = Array.from({ length: count }, (_, k) => seen[Math.floor(((k + 0.5) * seen.length) / count)]!);
  const half = Math.ceil((LOCAL_PART * count) / 2);
  return {
    predictedMicros: kept.map(({ predicted }) => Math.round(predicted)),
    laterMicros: kept.map(({ later }, k) => {
      const around = kept.slice(Math.max(0, k - half), k + half + 1).map((one) => one.later);
      return Math.round(later - quantileOf(around, 0.5));
    }),
  };
}
