import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/base/units.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "../workload-request.ts";
import type { ImportReport } from "./import-report.ts";
import { inOrder } from "./in-order.ts";
import { REQUEST_TOKENS_MAX } from "#core/base/units.ts";

import { readLines } from "./line-reader.ts";

export const AZURE_HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens";

const ROW = /^(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?,(\d{1,10}),(\d{1,10})$/;

interface Row {
  /** Microseconds since the epoch. */
  readonly time: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
}

/** Azure's LLM inference CSV: a time with 100 ns digits, prompt and answer lengths. It holds nothing of content. */
export async function* readAzure(path: string, report: ImportReport): AsyncGenerator<WorkloadRequest> {
  let start: number | undefined;
  for await (const row of inOrder(readRows(path, report), report)) {
    start ??= row.time;
    if (row.outputTokens === 0) report.adjust("output of 0 tokens raised to 1");
    yield {
      ...LENGTHS_ONLY,
      index: report.accept(),
      arrivalMicros: Math.max(0, row.time - start),
      promptTokens: row.promptTokens,
      outputTokens: Math.max(1, row.outputTokens),
    };
  }
}

async function* readRows(path: string, report: ImportReport): AsyncGenerator<Row> {
  for await (const line of readLines(path)) {
    if (line.number === 1 && line.text.trim() === AZURE_HEADER) continue;
    report.records++;
    const row = parseRow(line.text.trim());
    if (typeof row === "string") report.refuse(`${path}:${line.number}`, row);
    else yield row;
  }
}

function parseRow(text: string): Row | string {
  const match = ROW.exec(text);
  if (match === null) return `not a row of ${AZURE_HEADER}`;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number);
  const seconds = Date.UTC(year, month - 1, day, hour, minute, second) / MICROS_PER_MILLI;
  const micros = Number((match[7] ?? "").padEnd(6, "0").slice(0, 6));
  const promptTokens = Number(match[8]);
  const outputTokens = Number(match[9]);
  if (promptTokens === 0 || promptTokens > REQUEST_TOKENS_MAX) return "ContextTokens is not a number of tokens >= 1";
  if (outputTokens > REQUEST_TOKENS_MAX) return "GeneratedTokens is not a number of tokens >= 0";
  return { time: seconds * MICROS_PER_SECOND + micros, promptTokens, outputTokens };
}
