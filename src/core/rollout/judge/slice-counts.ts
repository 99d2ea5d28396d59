import type { Micros } from "../../base/units.ts";

/**
 * Requests that came within so short a time share a queue and whatever else went wrong then: they count as one. Of a
 * window it is a four-hundredth at least, so that their number stays bounded.
 */
const SLICE_MICROS: Micros = 250_000;
const SLICES_MAX = 400;

/** In which slice of its stretch a request arrives. */
export function sliceOf(stretch: Micros, windowMicros: Micros, at: Micros): number {
  return Math.max(0, Math.floor((at - stretch) / sliceMicros(windowMicros)));
}

/** How long a slice of such a stretch is. */
export function sliceMicros(windowMicros: Micros): Micros {
  return Math.max(SLICE_MICROS, windowMicros / SLICES_MAX);
}

/** When a slice of a stretch begins: a whole number, so that it is the same on every clock. */
export function sliceAt(stretch: Micros, windowMicros: Micros, slice: number): Micros {
  return stretch + Math.round(slice * sliceMicros(windowMicros));
}

/**
 * How many slices of even size say as much as these counts of requests do (L. Kish, "Survey Sampling", 1965); 0 of
 * none.
 */
export function evenSlices(counts: Iterable<number>): number {
  let [sum, squares] = [0, 0];
  for (const count of counts) {
    sum += count;
    squares += count * count;
  }
  return squares === 0 ? 0 : (sum * sum) / squares;
}
