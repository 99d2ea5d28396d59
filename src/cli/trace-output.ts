import { workloadFileHeader, workloadLine } from "#trace/export/workload-file.ts";
import { LineWriter } from "#trace/export/line-writer.ts";
import { TraceWriter } from "#trace/export/trace-writer.ts";
import type { TraceItem } from "#trace/record.ts";
import { Tally } from "#trace/transform/tally.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";

/** A text format, one piece a request, or the reason why a request has no place in it. */
export interface LineFormat<T> {
  readonly head: string;
  readonly line: (one: T) => string | { readonly refused: string };
  readonly between: string;
  readonly tail: string;
}

export const WORKLOAD_NAME = /\.jsonl(?:\.zst|\.gz)?$/;

/** Writes all requests of a stream; what the format cannot say is counted in the result. */
export async function writeLines<T>(
  path: string,
  items: AsyncIterable<T>,
  format: LineFormat<T>,
): Promise<{ readonly written: number; readonly refused: Tally }> {
  const writer = new LineWriter(path);
  const refused = new Tally();
  let written = 0;
  await writer.write(format.head);
  for await (const item of items) {
    const line = format.line(item);
    if (typeof line === "string") await writer.write(written++ === 0 ? line : `${format.between}${line}`);
    else refused.count(line.refused);
  }
  await writer.write(format.tail);
  await writer.close();
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

/** Writes a recorded trace to a folder; the records in it. */
export async function writeTrace(directory: string, items: AsyncIterable<TraceItem>): Promise<TraceWriter> {
  const writer = new TraceWriter(directory);
  for await (const item of items) await writer.write(item);
  await writer.close();
  return writer;
}
