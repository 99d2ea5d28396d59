import type { ImportReport } from "./import-report.ts";

/** Records that a late one may be behind and still find its place. */
const WINDOW_RECORDS = 1_024;

export interface Timed {
  /** Recorded time in whatever unit, as long as it grows. */
  readonly time: number;
}

/**
 * The records by time, equal times in file order, for files that are nearly sorted: concurrent calls are often logged
 * as they end. A record that is later than the window allows is yielded where it stands, and counted.
 */
export async function* inOrder<T extends Timed>(source: AsyncIterable<T>, report: ImportReport): AsyncGenerator<T> {
  const window: T[] = [];
  let yielded = Number.NEGATIVE_INFINITY;
  for await (const record of source) {
    if (record.time < yielded) {
      report.adjust("record later than the reordering window, taken where it stands");
      yield record;
      continue;
    }
    let at = window.length;
    while (at > 0 && (window[at - 1]?.time ?? 0) > record.time) at--;
    if (at < window.length) report.adjust("record out of order, put in its place");
    window.splice(at, 0, record);
    if (window.length <= WINDOW_RECORDS) continue;
    const first = window.shift();
    if (first === undefined) continue;
    yielded = first.time;
    yield first;
  }
  yield* window;
}
