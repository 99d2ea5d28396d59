import { rm } from "node:fs/promises";
import { workloadFileHeader, workloadLine } from "#trace/export/workload-file.ts";
import { LineWriter } from "#trace/export/line-writer.ts";
import { TraceWriter } from "#trace/export/trace-writer.ts";
import type { TraceItem } from "#trace/codec/record.ts";
import { Tally } from "#trace/transform/tally.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";

/** A text format, one piece a request, or the reason why a request has no place in it. */
export interface LineFormat<T> {
  readonly head: string;
  readonly line: (one: T) => string | { readonly refused: string };
  readonly between: string;
  readonly tail: string;
}

export const WORKLOAD_NAME = /\.jsonl(?:\.zst|\.gz)?$/;

/**
 * Writes all requests of a stream; what the format cannot hold is counted in the result. Where it fails, or nothing is
 * left to write, there is no file afterwards.
 */
export async function writeLines<T>(
  path: string,
  items: AsyncIterable<T>,
  format: LineFormat<T>,
): Promise<{ readonly written: number; readonly refused: Tally }> {
  const writer = new LineWriter(path);
  const refused = new Tally();
  let written = 0;
  try {
    await writer.write(format.head);
    for await (const item of items) {
      const line = format.line(item);
      if (typeof line === "string") await writer.write(written++ === 0 ? line : `${format.between}${line}`);
      else refused.count(line.refused);
    }
    await writer.write(format.tail);
    if (written > 0) await writer.close();
    else await writer.abandon();
  } catch (error) {
    await writer.abandon();
    throw error;
  }
  return { written, refused };
}

/** Writes a workload file; the number of requests in it. */
export async function writeWorkload(
  path: string,
  requests: AsyncIterable<WorkloadRequest>,
  steps: readonly string[],
): Promise<number> {
  const format = { head: workloadFileHeader(steps), line: workloadLine, between: "", tail: "" };
  return (await writeLines(path, requests, format)).written;
}

/**
 * Writes a recorded trace to a folder that is not there yet. Where it fails, or nothing is left to write, there is no
 * folder afterwards.
 */
export async function writeTrace(directory: string, items: AsyncIterable<TraceItem>): Promise<TraceWriter> {
  const writer = new TraceWriter(directory);
  try {
    for await (const item of items) await writer.write(item);
    await writer.close();
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
  if (writer.records === 0) await rm(directory, { recursive: true, force: true });
  return writer;
}

/** Prints what was written, and what was left out. Throws CommandFailure when that was all. */
export function reportWritten(
  output: string,
  count: number,
  what: string,
  left: Tally,
  notes: readonly string[],
): void {
  const lines = count === 0 ? [] : [`${output}: ${count} ${what}`];
  for (const [reason, requests] of left.entries()) lines.push(`${requests} requests left out: ${reason}`);
  process.stdout.write([...lines, ...notes].map((line) => `${line}\n`).join(""));
  if (count === 0) throw new CommandFailure(`${output} was not written: no request is left for it`);
}
