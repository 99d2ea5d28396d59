import { RecentMap } from "#core/base/recent-map.ts";
import { REQUEST_TOKENS_MAX } from "#core/base/units.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "../workload-request.ts";
import { ImportError, type ImportReport } from "./import-report.ts";
import {
  amountOf,
  isRecord,
  type JsonRecord,
  MOMENT_RANGE,
  momentOf,
  parseRecord,
  textField,
  tokenCount,
  wholeNumbers,
} from "./json-record.ts";
import { readLines } from "./line-reader.ts";

export const WORKLOAD_FILE_FORMAT = "gnomon-workload";
/** The only version that exists; every other is refused. */
export const WORKLOAD_FILE_VERSION = 1;

/** Answers to one request. */
const SEQUENCES_MAX = 65_535;
/** Conversations whose last turn is remembered, the one that was longest silent forgotten first. */
const CONVERSATIONS_MAX = 1_000_000;

/** Our own workload files, one JSON object a line with the fields of WorkloadRequest, after a header. */
export async function* readWorkloadFile(path: string, report: ImportReport): AsyncGenerator<WorkloadRequest> {
  const turns = new RecentMap<string, number>(CONVERSATIONS_MAX);
  let latest = 0;
  for await (const line of readLines(path)) {
    if (line.number === 1) {
      checkHeader(line.text, path);
      continue;
    }
    report.records++;
    const row = line.tooLong ? "line too long" : parseRow(line.text);
    if (typeof row === "string") {
      report.refuse(`${path}:${line.number}`, row);
      continue;
    }
    if (row.session !== "") {
      if ((turns.get(row.session) ?? -1) >= row.turn) {
        report.refuse(`${path}:${line.number}`, "turn that was given already, or is out of its order");
        continue;
      }
      turns.set(row.session, row.turn);
    }
    if (row.thinkMicros === undefined) {
      if (row.arrivalMicros < latest) report.adjust("arrival before that of a line above");
      else latest = row.arrivalMicros;
    }
    yield { ...row, index: report.accept() };
  }
}

function checkHeader(text: string, path: string): void {
  const header = parseRecord(text);
  const version = typeof header === "string" ? undefined : header["version"];
  if (version !== WORKLOAD_FILE_VERSION)
    throw new ImportError(
      `${path}:1: version: expected ${WORKLOAD_FILE_VERSION}, got ${JSON.stringify(version) ?? "none"}`,
    );
}

function parseRow(text: string): Omit<WorkloadRequest, "index"> | string {
  const record = parseRecord(text);
  if (typeof record === "string") return record;
  const arrivalMicros = momentOf(record, "arrivalMicros", 1);
  if (arrivalMicros === undefined) return `arrivalMicros is not a number of microseconds ${MOMENT_RANGE}`;
  const promptTokens = tokenCount(record, "promptTokens");
  if (promptTokens === undefined || promptTokens === 0) return "promptTokens is not a number of tokens >= 1";
  const outputTokens = tokenCount(record, "outputTokens");
  if (outputTokens === undefined || outputTokens === 0) return "outputTokens is not a number of tokens >= 1";
  const answers = parseAnswers(record);
  if (typeof answers === "string") return answers;
  const blocks = parseBlocks(record);
  if (typeof blocks === "string") return blocks;
  const links = parseLinks(record);
  if (typeof links === "string") return links;
  return {
    ...LENGTHS_ONLY,
    ...answers,
    ...blocks,
    ...links,
    arrivalMicros,
    promptTokens,
    outputTokens,
    session: textField(record, "session") ?? "",
    turn: tokenCount(record, "turn") ?? 0,
    tenant: textField(record, "tenant") ?? "",
    sloClass: textField(record, "sloClass") ?? "",
    model: textField(record, "model") ?? "",
  };
}

function parseAnswers(record: JsonRecord): Pick<WorkloadRequest, "sequences" | "tokensByPrompt"> | string {
  const sequences = tokenCount(record, "sequences");
  if (record["sequences"] !== undefined && !(sequences! >= 2 && sequences! <= SEQUENCES_MAX))
    return `sequences is not a number of answers from 2 to ${SEQUENCES_MAX}`;
  const prompts = record["tokensByPrompt"];
  const tokensByPrompt = prompts === undefined ? undefined : wholeNumbers(prompts, REQUEST_TOKENS_MAX);
  if (prompts !== undefined && tokensByPrompt === undefined) return "tokensByPrompt is not a list of numbers of tokens";
  if ((tokensByPrompt?.length ?? 0) > (sequences ?? 1)) return "tokensByPrompt has more prompts than there are answers";
  return { ...(sequences !== undefined && { sequences }), ...(tokensByPrompt && { tokensByPrompt }) };
}

function parseBlocks(record: JsonRecord): Pick<WorkloadRequest, "blockIds" | "blockTokens"> | string {
  if (record["blockIds"] === undefined) return { blockIds: undefined, blockTokens: LENGTHS_ONLY.blockTokens };
  const ids = wholeNumbers(record["blockIds"], Number.MAX_SAFE_INTEGER);
  if (ids === undefined) return "blockIds is not a list of whole numbers";
  const blockTokens = amountOf(record, "blockTokens");
  if (blockTokens === undefined || blockTokens === 0) return "blockTokens is not a number above 0";
  return { blockIds: Float64Array.from(ids), blockTokens };
}

function parseLinks(record: JsonRecord): Pick<WorkloadRequest, "parent" | "joins" | "thinkMicros"> | string {
  const { parent, joins = [] } = record;
  const thinkMicros = momentOf(record, "thinkMicros", 1);
  if (record["thinkMicros"] !== undefined && thinkMicros === undefined)
    return `thinkMicros is not a number of microseconds ${MOMENT_RANGE}`;
  if (!Array.isArray(joins) || !joins.every((name) => typeof name === "string")) return "joins is not a list of names";
  if (parent === undefined) return { parent: undefined, joins, thinkMicros };
  const session = isRecord(parent) ? textField(parent, "session") : undefined;
  const turn = isRecord(parent) ? tokenCount(parent, "turn") : undefined;
  if (session === undefined || turn === undefined) return "parent is not a session and a turn";
  return { parent: { session, turn }, joins, thinkMicros };
}
