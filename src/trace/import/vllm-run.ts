import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { TraceEngine } from "../codec/record.ts";
import type { TrafficRequest } from "../transform/traffic.ts";
import { LENGTHS_ONLY } from "../workload-request.ts";
import type { ImportOptions } from "./import-options.ts";
import { ImportError, type ImportReport } from "./import-report.ts";
import { inOrder } from "./in-order.ts";
import { amountOf, type JsonRecord, parseRecord } from "./json-record.ts";
import { keyedBlockIds } from "./keyed-block-ids.ts";
import { type Line, readLines } from "./line-reader.ts";
import {
  clientTimedRow,
  clocksOf,
  type ClockOffset,
  engineTimedRow,
  isClientTimed,
  isEngineTimed,
  type VllmRow,
} from "./vllm-row.ts";
import { readVllmSettings } from "./vllm-settings.ts";

/** Files of a run, in a folder of its own. */
export const VLLM_RUN_FILES = {
  settings: "meta.json",
  requests: "requests.jsonl",
  workload: "workload.jsonl",
} as const;

/** A run of one vLLM engine: what it was, and its requests with what came of them. */
export interface VllmRun {
  readonly engine: TraceEngine;
  /** Name of the model; "" where it is not stated. */
  readonly model: string;
  /** vLLM's; "" where it is not stated. */
  readonly version: string;
  /** Wall time of the run's beginning, in microseconds since 1970; 0 where it is not stated. */
  readonly startWallMicros: number;
  readonly notes: readonly string[];
  /** The requests in order of arrival, once. */
  readonly traffic: AsyncGenerator<TrafficRequest>;
}

/** Tokens of a block where the run does not state it: vLLM's default. */
const BLOCK_TOKENS_DEFAULT = 16;
/** Request ids that are checked against one another. */
const IDS_MAX = 2_000_000;

/**
 * A folder with a run's meta.json (the engine's settings) and requests.jsonl (a line per request). Either the engine
 * timed the requests (arrival_time, queued_ts, first_token_ts, last_token_ts; their tokens are in workload.jsonl, line by
 * line), or a client did (send, first_chunk, chunks, cached_tokens). Requests were sent at their times whatever became
 * of earlier ones, so each is a conversation of its own. Throws ImportError when it is no such folder.
 */
export async function openVllmRun(folder: string, options: ImportOptions, report: ImportReport): Promise<VllmRun> {
  const settingsFile = join(folder, VLLM_RUN_FILES.settings);
  const { engine, model, version, notes } = readVllmSettings(settingsFile);
  const file = join(folder, VLLM_RUN_FILES.requests);
  const clock = await clockOf(file);
  const rows = clock === undefined ? clientRows(file, report) : engineRows(folder, clock, report);
  const stated =
    clock === undefined
      ? []
      : ["the engine's clock is taken to be ahead by the least distance of queued_ts from arrival_time"];
  return {
    engine,
    model,
    version,
    startWallMicros: Math.round(MICROS_PER_SECOND * (clock?.begin ?? wallStart(settingsFile))),
    notes: [...notes, ...stated],
    traffic: trafficOf(rows, { engine, model }, options, report),
  };
}

async function* trafficOf(
  rows: AsyncIterable<VllmRow>,
  { engine, model }: Pick<VllmRun, "engine" | "model">,
  { key }: ImportOptions,
  report: ImportReport,
): AsyncGenerator<TrafficRequest> {
  const blockTokens = engine.blockTokens ?? BLOCK_TOKENS_DEFAULT;
  const idsOf = keyedBlockIds(key, blockTokens);
  const seen = new Set<string>();
  for await (const row of inOrder(rows, report)) {
    if (row.id !== "" && seen.has(row.id)) {
      report.refuse(`${report.path}: ${row.id}`, "request id that was given already");
      continue;
    }
    if (seen.size < IDS_MAX) seen.add(row.id);
    const index = report.accept();
    const request = {
      ...LENGTHS_ONLY,
      index,
      arrivalMicros: row.time,
      session: `request_${index}`,
      promptTokens: row.promptTokens,
      outputTokens: row.outputTokens,
      blockIds: row.words && idsOf(row.words),
      blockTokens,
      model,
    };
    const observed = {
      endpoint: "",
      outcome: row.ok ? ("ok" as const) : ("failed" as const),
      ttftMicros: row.firstAt - row.time,
      e2eMicros: row.endAt - row.time,
      cachedTokens: row.cachedTokens,
    };
    yield { id: row.id, request, observed };
  }
}

async function* clientRows(file: string, report: ImportReport): AsyncGenerator<VllmRow> {
  for await (const line of readLines(file)) {
    const row = take(line, report, (record) => clientTimedRow(record));
    if (typeof row === "string") report.refuse(`${file}:${line.number}`, row);
    else yield row;
  }
}

async function* engineRows(folder: string, clock: ClockOffset, report: ImportReport): AsyncGenerator<VllmRow> {
  const file = join(folder, VLLM_RUN_FILES.requests);
  const workload = readLines(join(folder, VLLM_RUN_FILES.workload));
  let sent: Line | undefined;
  for await (const line of readLines(file)) {
    while (sent === undefined || sent.number < line.number) {
      const step = await workload.next();
      if (step.done === true) break;
      sent = step.value;
    }
    const text = sent?.number === line.number ? sent.text : undefined;
    const row = take(line, report, (record) => engineTimedRow(record, text, clock));
    if (typeof row === "string") report.refuse(`${file}:${line.number}`, row);
    else yield row;
  }
}

function take(line: Line, report: ImportReport, rowOf: (record: JsonRecord) => VllmRow | string): VllmRow | string {
  report.records++;
  if (line.tooLong) return "line too long";
  const record = parseRecord(line.text);
  return typeof record === "string" ? record : rowOf(record);
}

/** The clocks of a run that its engine timed; undefined for one that a client timed. */
async function clockOf(file: string): Promise<ClockOffset | undefined> {
  if (!existsSync(file)) throw new ImportError(`${file}: expected the requests of the run, got no such file`);
  let known = false;
  let begin = Infinity;
  let offset = Infinity;
  for await (const line of readLines(file)) {
    const record = parseRecord(line.text);
    if (typeof record === "string") continue;
    if (!known && isClientTimed(record)) return undefined;
    known ||= isEngineTimed(record);
    const clocks = clocksOf(record);
    if (clocks === undefined) continue;
    begin = Math.min(begin, clocks.arrival);
    offset = Math.min(offset, clocks.queued - clocks.arrival);
  }
  if (!known)
    throw new ImportError(
      `${file}: expected lines with arrival_time, queued_ts, first_token_ts and last_token_ts, or with send, first_chunk and completion_tokens`,
    );
  const workload = join(file, "..", VLLM_RUN_FILES.workload);
  if (!existsSync(workload)) throw new ImportError(`${workload}: expected the prompts of the run, got no such file`);
  return { begin, offset };
}

function wallStart(settingsFile: string): number {
  const meta = parseRecord(readFileSync(settingsFile, "utf8"));
  return typeof meta === "string" ? 0 : (amountOf(meta, "wall_start_unix") ?? 0);
}
