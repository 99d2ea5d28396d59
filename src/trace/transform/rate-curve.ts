import type { RateWindow } from "./rate-shape.ts";

/** Rows of a curve; ten-minute windows of a year are half of it. */
const ROWS_MAX = 100_000;
const HEADER = /^[a-z_ ]+,[a-z_ ]+$/i;
const EXPECTED = "expected a row `seconds,rate` with a time later than the one before and a rate of 0 or more";

/** How a rate changes over a length of time, as windows whose factors have the mean 1. */
export interface RateCurve {
  readonly windows: readonly RateWindow[];
  readonly seconds: number;
  /** Highest and lowest factor. */
  readonly peak: number;
  readonly trough: number;
}

/**
 * A curve of rows `seconds,rate`: the rate from that time on, in any unit, the first at 0. The last window is as long as
 * the one before it. Lines that begin with # and a line of names are passed over. Throws RangeError that names the line.
 */
export function readRateCurve(text: string): RateCurve {
  const rows: { readonly at: number; readonly rate: number }[] = [];
  for (const [number, line] of text.split("\n").entries()) {
    const row = line.trim();
    if (row === "" || row.startsWith("#") || (rows.length === 0 && HEADER.test(row))) continue;
    const [at, rate, more] = row.split(",").map((field) => (field.trim() === "" ? NaN : Number(field)));
    const isRow = at !== undefined && rate !== undefined && more === undefined && Number.isFinite(at);
    if (
      !isRow ||
      !Number.isFinite(rate) ||
      rate < 0 ||
      at <= (rows.at(-1)?.at ?? -1) ||
      (rows.length === 0 && at !== 0)
    )
      throw new RangeError(`line ${number + 1}: ${EXPECTED}, the first at 0; got ${JSON.stringify(row.slice(0, 80))}`);
    if (rows.length === ROWS_MAX) throw new RangeError(`expected at most ${ROWS_MAX} rows`);
    rows.push({ at, rate });
  }
  const last = rows.at(-1);
  const before = rows.at(-2);
  if (last === undefined || before === undefined) throw new RangeError("expected two rows or more");
  const ends = [...rows.slice(1).map(({ at }) => at), 2 * last.at - before.at];
  const seconds = ends.at(-1)!;
  const mean = rows.reduce((sum, { at, rate }, i) => sum + rate * (ends[i]! - at), 0) / seconds;
  if (mean === 0) throw new RangeError("expected a rate above 0 somewhere");
  const windows = rows.map(({ at, rate }, i) => ({ startSeconds: at, endSeconds: ends[i]!, factor: rate / mean }));
  const factors = windows.map(({ factor }) => factor).sort((a, b) => a - b);
  return { windows, seconds, peak: factors.at(-1)!, trough: factors[0]! };
}
