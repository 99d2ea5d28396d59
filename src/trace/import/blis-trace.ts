import { existsSync, readFileSync } from "node:fs";
import { nameHash } from "#core/base/random.ts";
import { yamlValueOf } from "../yaml-text.ts";
import type { Observation, TrafficRequest } from "../transform/traffic.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "../workload-request.ts";
import { BLIS_COLUMNS, BLIS_TRACE_VERSION } from "./blis-columns.ts";
import { namespacedBlockId } from "./block-id.ts";
import { ImportError, type ImportReport } from "./import-report.ts";
import { inOrder } from "./in-order.ts";
import { REQUEST_TOKENS_MAX } from "#core/base/units.ts";
import { isRecord } from "./json-record.ts";
import { readLines } from "./line-reader.ts";

const BLOCK_TOKENS = 16;
const NAMESPACES = 134_217_728;
/** Request ids that are checked against one another. */
const IDS_MAX = 2_000_000;

interface Row {
  /** Time of injection: when it was sent where that was recorded, else its arrival. */
  readonly time: number;
  readonly field: (name: string) => string;
  readonly number: (name: string) => number;
}

/**
 * BLIS TraceV2: a CSV with one row a request, and a YAML header of the same name beside it. Only complete rows are taken
 * (status ok or empty), as BLIS does. A prompt is the group's prefix and an own rest; rounds of a session share nothing
 * else, since the format does not say what they have in common. Rounds with a think time are closed loop.
 */
export async function* readBlisTrace(path: string, report: ImportReport): AsyncGenerator<TrafficRequest> {
  checkHeader(path);
  let start: number | undefined;
  const ids = new Set<string>();
  for await (const row of inOrder(readRows(path, report), report)) {
    const id = row.field("request_id");
    if (ids.has(id)) {
      report.refuse(path, "request_id that was given already");
      continue;
    }
    if (ids.size < IDS_MAX) ids.add(id);
    start ??= row.time;
    yield { id, request: requestOf(row, start, report), observed: observationOf(row) };
  }
}

function checkHeader(path: string): void {
  const headerPath = path.replace(/\.csv(\.gz|\.zst)?$/, ".yaml");
  if (headerPath === path || !existsSync(headerPath)) return;
  const read = yamlValueOf(readFileSync(headerPath, "utf8"));
  if (!read.ok) throw new ImportError(`${headerPath}: expected the YAML header of a BLIS trace`);
  const header = read.value;
  const version: unknown = isRecord(header) ? header["trace_version"] : undefined;
  if (version !== BLIS_TRACE_VERSION)
    throw new ImportError(
      `${headerPath}: trace_version: expected ${BLIS_TRACE_VERSION}, got ${JSON.stringify(version) ?? "none"}`,
    );
  const unit: unknown = isRecord(header) ? header["time_unit"] : undefined;
  if (unit !== undefined && unit !== "microseconds" && unit !== "us")
    throw new ImportError(`${headerPath}: time_unit: expected microseconds, got ${JSON.stringify(unit)}`);
}

async function* readRows(path: string, report: ImportReport): AsyncGenerator<Row> {
  let columns: Map<string, number> | undefined;
  for await (const line of readLines(path)) {
    const cells = line.tooLong ? [] : csvCells(line.text);
    if (columns === undefined) {
      columns = new Map(cells.map((name, i) => [name.trim(), i]));
      const missing = BLIS_COLUMNS.filter((name) => !columns?.has(name));
      if (missing.length > 0)
        throw new ImportError(`${path}:1: expected the columns of a TraceV2, without ${missing.join(", ")}`);
      continue;
    }
    report.records++;
    const row = line.tooLong ? "line too long" : rowOf(cells, columns);
    if (typeof row === "string") report.refuse(`${path}:${line.number}`, row);
    else yield row;
  }
}

function rowOf(cells: readonly string[], columns: ReadonlyMap<string, number>): Row | string {
  if (cells.length !== columns.size) return "row with another number of columns than the first line";
  const field = (name: string) => cells[columns.get(name) ?? -1] ?? "";
  const number = (name: string) => (field(name) === "" ? 0 : Number(field(name)));
  const status = field("status");
  if (status !== "ok" && status !== "") return "status is not ok";
  const prompt = number("input_tokens") + number("prefix_length");
  if (!Number.isInteger(prompt) || prompt < 1 || prompt > REQUEST_TOKENS_MAX)
    return "input_tokens is not a number of tokens >= 1";
  const output = number("output_tokens");
  if (!Number.isInteger(output) || output < 0 || output > REQUEST_TOKENS_MAX)
    return "output_tokens is not a number of tokens >= 0";
  const time = number("send_time_us") > 0 ? number("send_time_us") : number("arrival_time_us");
  if (!(time >= 0)) return "arrival_time_us is not a time";
  return { time, field, number };
}

function requestOf(row: Row, start: number, report: ImportReport): WorkloadRequest {
  const { field, number } = row;
  const round = number("round_index");
  const think = number("think_time_us");
  if (number("output_tokens") === 0) report.adjust("output of 0 tokens raised to 1");
  const server = number("server_input_tokens");
  return {
    ...LENGTHS_ONLY,
    index: report.accept(),
    arrivalMicros: Math.max(0, Math.round(row.time - start)),
    session: field("session_id"),
    turn: round,
    thinkMicros: field("session_id") !== "" && round > 0 && field("think_time_us") !== "" ? think : undefined,
    promptTokens: server > 0 ? server : number("input_tokens") + number("prefix_length"),
    outputTokens: Math.max(1, number("output_tokens")),
    blockIds: prefixBlocks(field("prefix_group"), number("prefix_length")),
    blockTokens: BLOCK_TOKENS,
    tenant: field("tenant_id"),
    sloClass: field("slo_class"),
    model: field("model"),
  };
}

function prefixBlocks(group: string, length: number): Float64Array | undefined {
  if (group === "" || length < BLOCK_TOKENS) return undefined;
  const namespace = nameHash(group) % NAMESPACES;
  return Float64Array.from({ length: Math.floor(length / BLOCK_TOKENS) }, (_, i) => namespacedBlockId(namespace, i));
}

function observationOf({ time, number }: Row): Observation | undefined {
  const last = number("last_chunk_time_us");
  const first = number("first_chunk_time_us");
  if (last <= 0) return undefined;
  const ttftMicros = first > 0 ? first - time : NaN;
  return { endpoint: "", outcome: "ok", ttftMicros, e2eMicros: last - time, cachedTokens: NaN };
}

/** Cells of a CSV line; quotes may hold commas, and a doubled quote stands for one. */
function csvCells(text: string): string[] {
  if (!text.includes('"')) return text.split(",");
  const cells: string[] = [];
  for (const [, quoted, plain] of text.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g))
    cells.push(quoted === undefined ? (plain ?? "") : quoted.replaceAll('""', '"'));
  return cells;
}
