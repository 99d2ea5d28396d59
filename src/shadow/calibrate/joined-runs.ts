import type { Evidence } from "./evidence.ts";

/** Between two runs, so that nothing of the one is under way in the next. */
const APART_MICROS = 60_000_000;

/**
 * Several runs of one engine as one, each after the other had ended; endpoints by their position, since another run may
 * name them otherwise. No prompt of one run is cached in another: the engine may have been started anew.
 */
export function joinedRuns(runs: readonly [Evidence, ...Evidence[]]): Evidence {
  const [first] = runs;
  if (runs.length === 1) return first;
  const laterRunsAt: number[] = [];
  const left: Record<string, number> = {};
  let endpoints: readonly string[] = [];
  let until = 0;
  const rows = runs.flatMap((run, number) => {
    const begins = number === 0 ? 0 : until + APART_MICROS;
    if (number > 0) laterRunsAt.push(begins);
    if (run.endpoints.length > endpoints.length) endpoints = run.endpoints;
    for (const [reason, count] of Object.entries(run.left)) left[reason] = (left[reason] ?? 0) + count;
    return run.rows.map((row) => {
      const arrivalAt = begins + row.arrivalAt;
      until = Math.max(until, arrivalAt + (row.e2eMicros || 0));
      return { ...row, arrivalAt, hashes: row.hashes.map((word) => word ^ Math.imul(number, 0x9e3779b1)) };
    });
  });
  return { endpoints, rows, left, laterRunsAt };
}
