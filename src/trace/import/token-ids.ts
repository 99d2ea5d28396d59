import { LENGTHS_ONLY, type WorkloadRequest } from "../workload-request.ts";
import { contentBlockIds } from "./block-id.ts";
import type { ImportReport } from "./import-report.ts";
import { inOrder } from "./in-order.ts";
import { MOMENT_RANGE, momentOf, parseRecord, tokenCount, wholeNumbers } from "./json-record.ts";
import { readRows } from "./read-rows.ts";

/** vLLM's default block; the identity is computed from the tokens. */
const BLOCK_TOKENS = 16;
const NANOS_PER_MICRO = 1_000;
const TOKEN_ID_MAX = 2_147_483_647;

interface Row {
  /** Nanoseconds from the start of the run. */
  readonly time: number;
  readonly tokenIds: Int32Array;
  readonly outputTokens: number;
}

/** Workloads with exact tokens: `{"input_toks", "output_toks", "arrival_time_ns", "input_tok_ids": [...]}`. */
export async function* readTokenIds(path: string, report: ImportReport): AsyncGenerator<WorkloadRequest> {
  for await (const row of inOrder(readRows(path, report, parseRow), report)) {
    const { tokenIds } = row;
    if (row.outputTokens === 0) report.adjust("output of 0 tokens raised to 1");
    yield {
      ...LENGTHS_ONLY,
      index: report.accept(),
      arrivalMicros: Math.round(row.time / NANOS_PER_MICRO),
      promptTokens: tokenIds.length,
      outputTokens: Math.max(1, row.outputTokens),
      blockIds: contentBlockIds(tokenIds.length, BLOCK_TOKENS, (i) => tokenIds[i] ?? 0),
      blockTokens: BLOCK_TOKENS,
      tokenIds,
    };
  }
}

function parseRow(text: string): Row | string {
  const record = parseRecord(text);
  if (typeof record === "string") return record;
  const time = momentOf(record, "arrival_time_ns", 1 / NANOS_PER_MICRO);
  if (time === undefined) return `arrival_time_ns is not a number of nanoseconds ${MOMENT_RANGE}`;
  const outputTokens = tokenCount(record, "output_toks");
  if (outputTokens === undefined) return "output_toks is not a number of tokens >= 0";
  const ids = wholeNumbers(record["input_tok_ids"], TOKEN_ID_MAX);
  if (ids === undefined || ids.length === 0) return "input_tok_ids is not a list of token ids";
  if (record["input_toks"] !== undefined && record["input_toks"] !== ids.length)
    return "input_toks is not the number of input_tok_ids";
  return { time, tokenIds: Int32Array.from(ids), outputTokens };
}
