import { nameHash, randomFor } from "#core/base/random.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "../workload-request.ts";
import { inOrder } from "./in-order.ts";
import type { ImportOptions } from "./import-options.ts";
import type { ImportReport } from "./import-report.ts";
import { type JsonRecord, MOMENT_RANGE, momentOf, parseRecord, tokenCount, wholeNumbers } from "./json-record.ts";
import { readRows } from "./read-rows.ts";

/** What differs between publishers of such rows. */
interface RowForm {
  /** Tokens that one hash id stands for. */
  readonly blockTokens: number;
  readonly microsPerTime: number;
  readonly timeUnit: string;
  /** Adds the row's conversation, or states why the row is refused. */
  readonly sessionOf: (record: JsonRecord) => Conversation | string;
}

interface Conversation {
  readonly session: string;
  readonly turn: number;
}

const ALONE: Conversation = { session: "", turn: 0 };
/** Chats whose conversation is remembered, for those that continue them. */
const CHATS_MAX = 1_000_000;
/** Grid of the published conversation trace. */
const GRID_MILLIS = 3_000;
/** Distance from the grid that its timestamps show. */
const GRID_SLACK_MILLIS = 5;
/** Records that decide whether the timestamps lie on the grid. */
const GRID_SAMPLE = 256;
/** Requests of one cell are held to be spread in order; a larger cell is spread in parts. */
const CELL_RECORDS_MAX = 65_536;

interface Row extends Conversation {
  /** Recorded timestamp, in the form's unit. */
  readonly time: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly blockIds: Float64Array;
}

/** Names its conversations by `session_id` and `turn_id` (the B3 traces), or none. */
const MOONCAKE: RowForm = {
  blockTokens: 512,
  microsPerTime: MICROS_PER_MILLI,
  timeUnit: "milliseconds",
  sessionOf: ({ session_id: session, turn_id: turn = 0 }) => {
    if (session === undefined || session === null) return ALONE;
    if (!isName(session)) return "session_id is not a text or a whole number";
    return isTurn(turn) ? { session: String(session), turn } : "turn_id is not a whole number >= 0";
  },
};

/** Names each chat and the one that it continues, -1 for none: a conversation goes by the name of its first chat. */
function bailian(): RowForm {
  const firstOf = new Map<string, string>();
  return {
    blockTokens: 16,
    microsPerTime: MICROS_PER_SECOND,
    timeUnit: "seconds",
    sessionOf: ({ chat_id: chat, parent_chat_id: parent = -1, turn = 1 }) => {
      if (!isName(chat)) return "chat_id is not a text or a whole number";
      if (!isName(parent)) return "parent_chat_id is not a text or a whole number";
      if (!isTurn(turn)) return "turn is not a whole number >= 0";
      const session = firstOf.get(String(parent)) ?? String(chat);
      if (firstOf.size < CHATS_MAX) firstOf.set(String(chat), session);
      return { session, turn: Math.max(0, turn - 1) };
    },
  };
}

function isName(value: unknown): value is string | number {
  return (typeof value === "string" && value !== "") || Number.isSafeInteger(value);
}

function isTurn(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/**
 * Mooncake JSONL: `{"timestamp": ms, "input_length", "output_length", "hash_ids": [...]}`, one id per 512 tokens, the
 * last block partial, and perhaps `session_id` and `turn_id`. Ids are global and name a whole prefix. Timestamps of the
 * published trace lie on a 3,000 ms grid; requests of one cell are spread over it uniformly, in file order, so that no
 * burst is simulated that never was.
 */
export function readMooncake(path: string, options: ImportOptions, report: ImportReport) {
  return readHashIdRows(path, MOONCAKE, options, report);
}

/**
 * Alibaba's Bailian traces (qwen-bailian-usagetraces-anon): the same with `chat_id`, `parent_chat_id` and `turn`, one id
 * per 16 tokens and timestamps in seconds. Chats come when they came: open loop, as their answers' ends are not known.
 */
export function readBailian(path: string, options: ImportOptions, report: ImportReport) {
  return readHashIdRows(path, bailian(), options, report);
}

async function* readHashIdRows(
  path: string,
  form: RowForm,
  options: ImportOptions,
  report: ImportReport,
): AsyncGenerator<WorkloadRequest> {
  const rows = inOrder(
    readRows(path, report, (text) => parseRow(text, form, report)),
    report,
  );
  const sample: Row[] = [];
  while (sample.length < GRID_SAMPLE) {
    const next = await rows.next();
    if (next.done === true) break;
    sample.push(next.value);
  }
  const asked = options.gridMillis === "auto" ? gridOf(sample, form) : options.gridMillis;
  const grid = (asked * MICROS_PER_MILLI) / form.microsPerTime;
  const all = chain(sample, rows);
  yield* grid > 0 ? spreadOver(grid, all, { ...options, form }, report) : asRecorded(all, form, report);
}

async function* asRecorded(
  rows: AsyncIterable<Row>,
  form: RowForm,
  report: ImportReport,
): AsyncGenerator<WorkloadRequest> {
  let start: number | undefined;
  for await (const row of rows) {
    start ??= row.time;
    yield toRequest(row, Math.max(0, Math.round((row.time - start) * form.microsPerTime)), form, report);
  }
}

async function* spreadOver(
  grid: number,
  rows: AsyncIterable<Row>,
  { seed, form }: { readonly seed: number; readonly form: RowForm },
  report: ImportReport,
): AsyncGenerator<WorkloadRequest> {
  const random = randomFor(seed, nameHash("mooncake-arrivals"));
  let first: number | undefined;
  let cell: Row[] = [];
  let cellIndex = 0;
  for await (const row of rows) {
    const index = Math.round(row.time / grid);
    first ??= index;
    if (index !== cellIndex || cell.length >= CELL_RECORDS_MAX) {
      yield* flush(first);
      cellIndex = index;
    }
    cell.push(row);
  }
  yield* flush(first ?? 0);

  function* flush(origin: number): Generator<WorkloadRequest> {
    const widthMicros = grid * form.microsPerTime;
    const offsets = cell.map(() => Math.floor(random.next() * widthMicros)).sort((a, b) => a - b);
    for (const [i, row] of cell.entries()) {
      report.adjust(`arrival spread over a grid cell of ${widthMicros / MICROS_PER_MILLI} ms`);
      yield toRequest(row, Math.max(0, cellIndex - origin) * widthMicros + (offsets[i] ?? 0), form, report);
    }
    cell = [];
  }
}

function toRequest(row: Row, arrivalMicros: Micros, form: RowForm, report: ImportReport): WorkloadRequest {
  return {
    ...LENGTHS_ONLY,
    index: report.accept(),
    arrivalMicros,
    session: row.session,
    turn: row.turn,
    promptTokens: row.promptTokens,
    outputTokens: row.outputTokens,
    blockIds: row.blockIds,
    blockTokens: form.blockTokens,
  };
}

function parseRow(
  text: string,
  { blockTokens, microsPerTime, timeUnit, sessionOf }: RowForm,
  report: ImportReport,
): Row | string {
  const record = parseRecord(text);
  if (typeof record === "string") return record;
  const time = momentOf(record, "timestamp", microsPerTime);
  if (time === undefined) return `timestamp is not a number of ${timeUnit} ${MOMENT_RANGE}`;
  const promptTokens = tokenCount(record, "input_length");
  if (promptTokens === undefined || promptTokens === 0) return "input_length is not a number of tokens >= 1";
  const outputTokens = tokenCount(record, "output_length");
  if (outputTokens === undefined) return "output_length is not a number of tokens >= 0";
  const ids = wholeNumbers(record["hash_ids"], Number.MAX_SAFE_INTEGER);
  if (ids === undefined) return "hash_ids is not a list of whole numbers";
  if (ids.length !== Math.ceil(promptTokens / blockTokens))
    return `hash_ids does not have one id per ${blockTokens} tokens`;
  const conversation = sessionOf(record);
  if (typeof conversation === "string") return conversation;
  if (outputTokens === 0) report.adjust("output of 0 tokens raised to 1");
  return {
    ...conversation,
    time,
    promptTokens,
    outputTokens: Math.max(1, outputTokens),
    blockIds: Float64Array.from(ids),
  };
}

function gridOf(sample: readonly Row[], { microsPerTime }: RowForm): number {
  const onGrid = sample.every(({ time }) => {
    const past = ((time * microsPerTime) / MICROS_PER_MILLI) % GRID_MILLIS;
    return Math.min(past, GRID_MILLIS - past) <= GRID_SLACK_MILLIS;
  });
  return onGrid ? GRID_MILLIS : 0;
}

async function* chain(head: readonly Row[], tail: AsyncIterable<Row>): AsyncGenerator<Row> {
  yield* head;
  yield* tail;
}
