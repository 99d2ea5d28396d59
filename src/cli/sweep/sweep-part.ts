import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CommandFailure } from "#serve/process/command-failure.ts";
import { gnomonVersion } from "#serve/process/gnomon-version.ts";
import type { Sweep, SweepPoint } from "./sweep-file.ts";

/** One of so many parts of a sweep: every so-many-th point, from its number on. */
export interface Shard {
  /** From 0 on. */
  readonly index: number;
  readonly count: number;
}

/** The points of a shard. Neighbours cost about the same, so that they are dealt out in turn. */
export function pointsOf({ points }: Sweep, { index, count }: Shard): readonly SweepPoint[] {
  return points.filter((point) => point.index % count === index);
}

/** The text of a whole sweep: what it is, then a line for each point, in their order. */
export function wholeText(sweep: Sweep, lines: readonly string[]): string {
  return text(headOf(sweep), lines);
}

/** Writes a shard so that its file is there whole or not at all, whenever the process ends. */
export function writePart(folder: string, sweep: Sweep, shard: Shard, lines: readonly string[]): string {
  const file = partFile(folder, shard);
  const draft = `${file}.${process.pid}.draft`;
  mkdirSync(folder, { recursive: true });
  try {
    writeFileSync(draft, text({ ...headOf(sweep), shard: shard.index, shards: shard.count }, lines));
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
  return file;
}

/** The lines of a shard that was written before; undefined where it was not, or is another sweep's. */
export function readPart(folder: string, sweep: Sweep, shard: Shard): string[] | undefined {
  const file = partFile(folder, shard);
  if (!existsSync(file)) return undefined;
  const [head = "", ...lines] = readFileSync(file, "utf8").split("\n");
  const wanted = JSON.stringify({ ...headOf(sweep), shard: shard.index, shards: shard.count });
  const expected = pointsOf(sweep, shard);
  if (head !== wanted || lines.pop() !== "" || lines.length !== expected.length) return undefined;
  return lines.every((line, i) => line.startsWith(`{"point":${expected[i]!.index},`)) ? lines : undefined;
}

/** All points' lines out of the parts in a folder. Throws CommandFailure that names every part which is not there. */
export function mergedLines(folder: string, sweep: Sweep, count: number): string[] {
  const lines: string[] = Array.from({ length: sweep.points.length });
  const missing: number[] = [];
  for (let index = 0; index < count; index++) {
    const shard = { index, count };
    const part = readPart(folder, sweep, shard);
    if (part === undefined) missing.push(index);
    else pointsOf(sweep, shard).forEach((point, i) => (lines[point.index] = part[i]!));
  }
  if (missing.length > 0) {
    const names = missing.slice(0, NAMED_MAX).map((index) => partFile(folder, { index, count }));
    const more = missing.length > NAMED_MAX ? ` and ${missing.length - NAMED_MAX} more` : "";
    throw new CommandFailure(
      `${missing.length} of ${count} shards are not there, or of another sweep or version: ${names.join(", ")}${more}; ` +
        `run them again with --shard INDEX`,
    );
  }
  return lines;
}

function partFile(folder: string, { index, count }: Shard): string {
  return join(folder, `part-${String(index).padStart(5, "0")}-of-${String(count).padStart(5, "0")}.jsonl`);
}

function headOf({ command, digest, points }: Sweep) {
  return { sweep: digest, command, gnomon: gnomonVersion(), points: points.length };
}

function text(head: object, lines: readonly string[]): string {
  return `${[JSON.stringify(head), ...lines].join("\n")}\n`;
}

/** Parts that are named in a message. */
const NAMED_MAX = 8;
