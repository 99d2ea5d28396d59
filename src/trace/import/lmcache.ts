import type { Micros } from "#core/base/units.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "../workload-request.ts";
import { contentBlockIds } from "./block-id.ts";
import type { ImportOptions } from "./import-options.ts";
import type { ImportReport } from "./import-report.ts";
import { inOrder } from "./in-order.ts";
import { MOMENT_RANGE, momentOf, parseRecord, textField } from "./json-record.ts";
import { readRows } from "./read-rows.ts";
import { sessionStarts } from "./session-starts.ts";

/** Tokens a block of the identity that is computed from the text. */
const BLOCK_TOKENS = 16;
/** Conversations whose last call is remembered; the longest silent one is forgotten. */
const SESSIONS_MAX = 65_536;

interface Row {
  /** Microseconds since the epoch. */
  readonly time: number;
  readonly input: string;
  readonly outputChars: number;
  readonly session: string;
}

/**
 * LMCache's agent traces: `{"timestamp": us, "input", "output", "session_id"}` with the real text, nearly in order.
 * Lengths are characters over `charsPerToken`. The service time was not recorded, so a turn's think time is the whole
 * distance to the turn before: an upper bound.
 */
export async function* readLmcache(
  files: readonly string[],
  options: ImportOptions,
  report: ImportReport,
): AsyncGenerator<WorkloadRequest> {
  const nextStart = sessionStarts(options.seed, options.sessionsPerSecond);
  const last = new Map<string, { time: number; turn: number }>();
  for (const file of files) {
    const startMicros = nextStart();
    let first: number | undefined;
    for await (const row of inOrder(readRows(file, report, parseRow), report)) {
      first ??= row.time;
      const before = last.get(row.session);
      last.delete(row.session);
      last.set(row.session, { time: row.time, turn: (before?.turn ?? -1) + 1 });
      if (last.size > SESSIONS_MAX) last.delete(last.keys().next().value ?? "");
      const arrivalMicros = startMicros + Math.max(0, row.time - first);
      const thinkMicros = before === undefined ? undefined : Math.max(0, row.time - before.time);
      yield toRequest(row, (before?.turn ?? -1) + 1, arrivalMicros, thinkMicros, options.charsPerToken, report);
    }
  }
}

function toRequest(
  row: Row,
  turn: number,
  arrivalMicros: Micros,
  thinkMicros: Micros | undefined,
  charsPerToken: number,
  report: ImportReport,
): WorkloadRequest {
  if (row.outputChars === 0) report.adjust("empty output, a length of 1 token assumed");
  const { input } = row;
  const blockChars = Math.max(1, Math.round(BLOCK_TOKENS * charsPerToken));
  return {
    ...LENGTHS_ONLY,
    index: report.accept(),
    arrivalMicros,
    session: row.session,
    turn,
    thinkMicros,
    promptTokens: Math.max(1, Math.ceil(input.length / charsPerToken)),
    outputTokens: Math.max(1, Math.ceil(row.outputChars / charsPerToken)),
    blockIds: contentBlockIds(input.length, blockChars, (i) => input.charCodeAt(i)),
    blockTokens: BLOCK_TOKENS,
    text: input,
  };
}

function parseRow(text: string): Row | string {
  const record = parseRecord(text);
  if (typeof record === "string") return record;
  const time = momentOf(record, "timestamp", 1);
  if (time === undefined) return `timestamp is not a number of microseconds ${MOMENT_RANGE}`;
  const input = textField(record, "input");
  const output = textField(record, "output");
  const session = textField(record, "session_id");
  if (input === undefined || output === undefined) return "input or output is not a text";
  if (session === undefined || session === "") return "session_id is not a text";
  if (input === "") return "empty input";
  return { time: Math.round(time), input, outputChars: output.length, session };
}
