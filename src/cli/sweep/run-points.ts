import { Piscina } from "piscina";
import { runPoint } from "./run-point.ts";
import type { Sweep, SweepPoint } from "./sweep-file.ts";

/**
 * The lines of some points of a sweep, in their order, on so many threads; with 1 in this one. `done` is called as each
 * ends.
 */
export async function runPoints(
  { command }: Sweep,
  points: readonly SweepPoint[],
  threads: number,
  done: (count: number) => void,
): Promise<string[]> {
  let count = 0;
  const counted = (line: string): string => {
    done(++count);
    return line;
  };
  const workers = Math.min(threads, points.length);
  if (workers < 2) {
    const lines: string[] = [];
    for (const point of points) lines.push(counted(await runPoint(command, point)));
    return lines;
  }
  const pool = new Piscina<SweepPoint, string>({
    filename: new URL("./point.worker.ts", import.meta.url).href,
    workerData: { command },
    minThreads: workers,
    maxThreads: workers,
  });
  try {
    return await Promise.all(points.map(async (point) => counted(await pool.run(point))));
  } finally {
    await pool.destroy();
  }
}
