import { nameHash, randomFor } from "#core/random.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/units.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "../workload-request.ts";
import { inOrder } from "./in-order.ts";
import type { ImportOptions } from "./import-options.ts";
import type { ImportReport } from "./import-report.ts";
import { amount, parseRecord, tokenCount, wholeNumbers } from "./json-record.ts";
import { readRows } from "./read-rows.ts";

/** Tokens that one hash id stands for. */
const BLOCK_TOKENS = 512;
/** Grid of the published conversation trace. */
const GRID_MILLIS = 3_000;
/** Distance from the grid that its timestamps show. */
const GRID_SLACK_MILLIS = 5;
/** Records that decide whether the timestamps lie on the grid. */
const GRID_SAMPLE = 256;
/** Requests of one cell are held to be spread in order; a larger cell is spread in parts. */
const CELL_RECORDS_MAX = 65_536;

interface Row {
  /** Recorded timestamp, ms. */
  readonly time: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly blockIds: Float64Array;
}

/**
 * Mooncake JSONL: `{"timestamp": ms, "input_length", "output_length", "hash_ids": [...]}`, one id per 512 tokens, the
 * last block partial. Ids are global and name a whole prefix. Timestamps of the published trace lie on a 3,000 ms grid;
 * requests of one cell are spread over it uniformly, in file order, so that no burst is simulated that never was.
 */
export async function* readMooncake(
  path: string,
  options: ImportOptions,
  report: ImportReport,
): AsyncGenerator<WorkloadRequest> {
  const rows = inOrder(
    readRows(path, report, (text) => parseRow(text, report)),
    report,
  );
  const sample: Row[] = [];
  while (sample.length < GRID_SAMPLE) {
    const next = await rows.next();
    if (next.done === true) break;
    sample.push(next.value);
  }
  const grid = options.gridMillis === "auto" ? gridOf(sample) : options.gridMillis;
  const all = chain(sample, rows);
  yield* grid > 0 ? spreadOver(grid, all, options.seed, report) : asRecorded(all, report);
}

async function* asRecorded(rows: AsyncIterable<Row>, report: ImportReport): AsyncGenerator<WorkloadRequest> {
  let start: number | undefined;
  for await (const row of rows) {
    start ??= row.time;
    yield toRequest(row, Math.max(0, Math.round((row.time - start) * MICROS_PER_MILLI)), report);
  }
}

async function* spreadOver(
  gridMillis: number,
  rows: AsyncIterable<Row>,
  seed: number,
  report: ImportReport,
): AsyncGenerator<WorkloadRequest> {
  const random = randomFor(seed, nameHash("mooncake-arrivals"));
  let first: number | undefined;
  let cell: Row[] = [];
  let cellIndex = 0;
  for await (const row of rows) {
    const index = Math.round(row.time / gridMillis);
    first ??= index;
    if (index !== cellIndex || cell.length >= CELL_RECORDS_MAX) {
      yield* flush(first);
      cellIndex = index;
    }
    cell.push(row);
  }
  yield* flush(first ?? 0);

  function* flush(origin: number): Generator<WorkloadRequest> {
    const widthMicros = gridMillis * MICROS_PER_MILLI;
    const offsets = cell.map(() => Math.floor(random.next() * widthMicros)).sort((a, b) => a - b);
    for (const [i, row] of cell.entries()) {
      report.adjust(`arrival spread over a grid cell of ${gridMillis} ms`);
      yield toRequest(row, Math.max(0, cellIndex - origin) * widthMicros + (offsets[i] ?? 0), report);
    }
    cell = [];
  }
}

function toRequest(row: Row, arrivalMicros: Micros, report: ImportReport): WorkloadRequest {
  return {
    ...LENGTHS_ONLY,
    index: report.accept(),
    arrivalMicros,
    promptTokens: row.promptTokens,
    outputTokens: row.outputTokens,
    blockIds: row.blockIds,
    blockTokens: BLOCK_TOKENS,
  };
}

function parseRow(text: string, report: ImportReport): Row | string {
  const record = parseRecord(text);
  if (typeof record === "string") return record;
  const time = amount(record, "timestamp");
  if (time === undefined) return "timestamp is not a number of milliseconds >= 0";
  const promptTokens = tokenCount(record, "input_length");
  if (promptTokens === undefined || promptTokens === 0) return "input_length is not a number of tokens >= 1";
  const outputTokens = tokenCount(record, "output_length");
  if (outputTokens === undefined) return "output_length is not a number of tokens >= 0";
  const ids = wholeNumbers(record["hash_ids"], Number.MAX_SAFE_INTEGER);
  if (ids === undefined) return "hash_ids is not a list of whole numbers";
  if (ids.length !== Math.ceil(promptTokens / BLOCK_TOKENS)) return "hash_ids does not have one id per 512 tokens";
  if (outputTokens === 0) report.adjust("output of 0 tokens raised to 1");
  return { time, promptTokens, outputTokens: Math.max(1, outputTokens), blockIds: Float64Array.from(ids) };
}

function gridOf(sample: readonly Row[]): number {
  const onGrid = sample.every(({ time }) => {
    const past = time % GRID_MILLIS;
    return Math.min(past, GRID_MILLIS - past) <= GRID_SLACK_MILLIS;
  });
  return onGrid ? GRID_MILLIS : 0;
}

async function* chain(head: readonly Row[], tail: AsyncIterable<Row>): AsyncGenerator<Row> {
  yield* head;
  yield* tail;
}
