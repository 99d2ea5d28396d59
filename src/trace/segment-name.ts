import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { MICROS_PER_MILLI } from "#core/base/units.ts";

const SEGMENT_DIGITS = 6;
const SEGMENT_FILE = /\.ndjson(\.zst)?$/;

/** File name of a segment: names sort by start of the run, then by run, then by segment. */
export function segmentName(startWallMicros: number, run: string, segment: number): string {
  const start = new Date(startWallMicros / MICROS_PER_MILLI).toISOString().replaceAll(/[-:.]/g, "");
  return `${start}-${run}-${String(segment).padStart(SEGMENT_DIGITS, "0")}.ndjson.zst`;
}

const RECORDED_NAME = /^\d{8}T\d{9}Z-[^/]+-\d{6,}\.ndjson\.zst$/;

/** Whether a file's name is one that `segmentName` makes. */
export function isSegmentName(name: string): boolean {
  return RECORDED_NAME.test(name);
}

/** Files of a trace in reading order: the file itself, or the segments in a folder. Rejects when there is none. */
export async function segmentFiles(path: string): Promise<string[]> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) throw new Error(`${path}: expected a trace file or a folder of segments, got no such file`);
  if (!found.isDirectory()) return [path];
  const names = (await readdir(path)).filter((name) => SEGMENT_FILE.test(name)).sort();
  if (names.length === 0) throw new Error(`${path}: expected trace segments (*.ndjson.zst), got a folder without any`);
  return names.map((name) => join(path, name));
}

/** Whether a path is a recorded trace by its name: a folder with segments, or one of them. */
export async function isTrace(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory() !== true) return SEGMENT_FILE.test(path);
  return (await readdir(path)).some((name) => SEGMENT_FILE.test(name));
}
