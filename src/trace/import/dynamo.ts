import { MICROS_PER_MILLI } from "#core/base/units.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "../workload-request.ts";
import type { ImportReport } from "./import-report.ts";
import { inOrder } from "./in-order.ts";
import {
  amountOf,
  isRecord,
  type JsonRecord,
  MOMENT_RANGE,
  momentOf,
  parseRecord,
  textField,
  tokenCount,
} from "./json-record.ts";
import { readLines } from "./line-reader.ts";

export const DYNAMO_SCHEMA = "dynamo.request.trace.v1";

/** Turns of conversations that are remembered, for the time until the next one. */
const SESSIONS_MAX = 1_000_000;
const BLOCK_TOKENS_MAX = 65_536;
/** Numbers above it have lost their last bits when JSON was read, so that those carry nothing. */
const EXACT_MAX = Number.MAX_SAFE_INTEGER;
const LOST_BITS = 2 ** 12;

interface Row {
  /** When the request was received, in milliseconds since 1970. */
  readonly time: number;
  /** When its answer ended, in the same; undefined where that is not written. */
  readonly endedAt: number | undefined;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly blockIds: Float64Array;
  readonly blockTokens: number;
  readonly session: string;
  readonly model: string;
}

/**
 * NVIDIA Dynamo's request traces (`DYN_REQUEST_TRACE`), a line a finished request: when it was received, its lengths, and
 * a hash of each block of the prompt and all before it. Files are written as requests end, and are read in the order in
 * which requests came. With a session's id a turn that came after the end of the one before is asked that long after it.
 */
export async function* readDynamo(files: readonly string[], report: ImportReport): AsyncGenerator<WorkloadRequest> {
  const sessions = new Map<string, { turn: number; endedAt: number | undefined }>();
  let start: number | undefined;
  for await (const row of inOrder(readRows(files, report), report)) {
    start ??= row.time;
    const before = row.session === "" ? undefined : sessions.get(row.session);
    const turn = before === undefined ? 0 : before.turn + 1;
    if (row.session !== "" && (before !== undefined || sessions.size < SESSIONS_MAX))
      sessions.set(row.session, { turn, endedAt: row.endedAt });
    const think = before?.endedAt === undefined ? -1 : row.time - before.endedAt;
    yield {
      ...LENGTHS_ONLY,
      index: report.accept(),
      arrivalMicros: Math.max(0, Math.round((row.time - start) * MICROS_PER_MILLI)),
      // Turns that overlap are conversations of their own: one that waited for the other would come at another time.
      session: think >= 0 || turn === 0 ? row.session : `${row.session} ${turn}`,
      turn: think >= 0 ? turn : 0,
      thinkMicros: think >= 0 ? Math.round(think * MICROS_PER_MILLI) : undefined,
      promptTokens: row.promptTokens,
      outputTokens: row.outputTokens,
      blockIds: row.blockIds,
      blockTokens: row.blockTokens,
      model: row.model,
    };
  }
}

async function* readRows(files: readonly string[], report: ImportReport): AsyncGenerator<Row> {
  for (const path of files) {
    for await (const line of readLines(path)) {
      const record = line.tooLong ? "line too long" : parseRecord(line.text);
      if (typeof record !== "string" && record["event_type"] !== "request_end") continue;
      report.records++;
      const row = typeof record === "string" ? record : rowOf(record, report);
      if (typeof row === "string") report.refuse(`${path}:${line.number}`, row);
      else yield row;
    }
  }
}

function rowOf(record: JsonRecord, report: ImportReport): Row | string {
  if (record["schema"] !== DYNAMO_SCHEMA) return `schema is not ${DYNAMO_SCHEMA}`;
  const request = record["request"];
  if (!isRecord(request)) return "request is not an object";
  const time = momentOf(request, "request_received_ms", MICROS_PER_MILLI);
  if (time === undefined) return `request.request_received_ms is not a number of milliseconds ${MOMENT_RANGE}`;
  const { replay } = request;
  if (!isRecord(replay)) return "request.replay is not there, so nothing is known of the prompt";
  const blockTokens = tokenCount(replay, "trace_block_size") ?? 0;
  if (blockTokens < 1 || blockTokens > BLOCK_TOKENS_MAX) return "replay.trace_block_size is not a number of tokens";
  const promptTokens = tokenCount(replay, "input_length");
  if (promptTokens === undefined || promptTokens === 0) return "replay.input_length is not a number of tokens >= 1";
  const outputTokens = tokenCount(request, "output_tokens");
  if (outputTokens === undefined) return "request.output_tokens is not a number of tokens";
  const hashes: unknown = replay["input_sequence_hashes"];
  if (!Array.isArray(hashes) || !hashes.every((hash) => typeof hash === "number" && hash >= 0))
    return "replay.input_sequence_hashes is not a list of numbers";
  if (hashes.length > Math.ceil(promptTokens / blockTokens)) return "replay has more hashes than the prompt has blocks";
  if (outputTokens === 0) report.adjust("output of 0 tokens raised to 1");
  const total = amountOf(request, "total_time_ms");
  const context = record["agent_context"];
  return {
    time,
    endedAt: total === undefined ? amountOf(record, "event_time_unix_ms") : time + total,
    promptTokens,
    outputTokens: Math.max(1, outputTokens),
    blockIds: Float64Array.from(hashes as readonly number[], (hash) =>
      hash <= EXACT_MAX ? hash : Math.floor(hash / LOST_BITS),
    ),
    blockTokens,
    session: isRecord(context) ? (textField(context, "session_id") ?? "") : "",
    model: textField(request, "model") ?? "",
  };
}
