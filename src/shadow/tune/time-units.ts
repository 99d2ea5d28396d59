import type { Units } from "./gain.ts";

/** Requests of stretches of time, as many stretches as the root of the requests that count, but no fewer than these. */
const STRETCHES_MIN = 8;

/**
 * Neighbours in time as one: requests in flight together slow one another down, whatever conversation they are of.
 * `counts` has 1 for rows that count; a row that never came is left out.
 */
export function timeUnits(arrivalMicros: Float64Array, counts: Uint8Array): Units {
  const rows = Array.from(arrivalMicros.keys()).filter(
    (row) => counts[row] === 1 && !Number.isNaN(arrivalMicros[row]!),
  );
  rows.sort((a, b) => arrivalMicros[a]! - arrivalMicros[b]! || a - b);
  const count = Math.min(rows.length, Math.max(STRETCHES_MIN, Math.round(Math.sqrt(rows.length))));
  const ofRow = new Int32Array(arrivalMicros.length).fill(-1);
  rows.forEach((row, place) => (ofRow[row] = Math.floor((place * count) / rows.length)));
  return { ofRow, count };
}

/** Conversations, of the rows that count. */
export function sessionUnits(ofRow: Int32Array, counts: Uint8Array, count: number): Units {
  return { ofRow: ofRow.map((cluster, row) => (counts[row] === 1 ? cluster : -1)), count };
}
