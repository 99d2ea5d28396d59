import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { accessLogOf } from "./access-log.ts";
import { AZURE_HEADER } from "./azure.ts";
import { DYNAMO_SCHEMA } from "./dynamo.ts";
import { OTEL_SPANS_KEY } from "./otel-spans.ts";
import { VLLM_BENCH_KEYS } from "./vllm-bench.ts";
import { BLIS_COLUMNS } from "./blis-columns.ts";
import { ImportError, type WorkloadFormat } from "./import-report.ts";
import { parseRecord } from "./json-record.ts";
import { readLines } from "./line-reader.ts";
import { specFormat } from "./spec-format.ts";
import { unreadable } from "./unreadable.ts";
import { VLLM_RUN_FILES } from "./vllm-run.ts";
import { WORKLOAD_FILE_FORMAT } from "./workload-file.ts";

export interface DetectedFormat {
  readonly format: WorkloadFormat;
  /** In the order in which they are read. */
  readonly files: readonly string[];
}

const ACCEPTED = `accepted formats:
  mooncake   .jsonl, lines with timestamp (ms), input_length, output_length, hash_ids
  bailian    .jsonl, lines with chat_id, parent_chat_id, timestamp (s), input_length, output_length, turn, hash_ids
  lmcache    .jsonl, lines with timestamp (us), input, output, session_id; or a folder of such files
  token-ids  .jsonl, lines with arrival_time_ns, input_tok_ids, output_toks
  vllm-run   a folder with meta.json and requests.jsonl of a measured vLLM, and workload.jsonl if it holds the prompts
  vllm-bench .json, a result of vllm bench serve with --save-detailed
  dynamo     .jsonl of Dynamo's request traces (schema ${DYNAMO_SCHEMA}); or a folder of such files
  otel-spans .jsonl of OTLP batches whose spans count tokens (gen_ai.usage.*)
  nginx      .jsonl, an access log with upstream_addr, msec or time_iso8601, request_time, status
  envoy      .jsonl, an access log with upstream_host, start_time, duration (ms), response_code
  llm-d      .jsonl, the log of its picker at verbosity 2
  azure      .csv with the header ${AZURE_HEADER}
  weka       .json with requests and block_size; or a folder of such files
  blis       .csv of a TraceV2, whose header is the .yaml beside it
  blis-result .json, a list of BLIS's SimResults; what was sent stands in the TraceV2 that was replayed
  workload   .jsonl that begins with {"format":"${WORKLOAD_FILE_FORMAT}"
  sharegpt   .json, a list of conversations with turns from human and gpt
  blis-spec  .yaml or .yml, BLIS's WorkloadSpec with its version and clients
  synthetic  .yaml or .yml, a specification with conversations, arrivals and groups
.gz and .zst of line formats are decompressed`;

/** Lines of which one may be broken without hiding the format of the others. */
const LINES_TRIED = 20;
const BEGIN_CHARS = 65_536;
const BLIS_RESULT_KEYS = ['"request_id"', '"ttft_us"', '"e2e_us"'];
const HALF_A_RUN = `expected ${VLLM_RUN_FILES.requests} beside ${VLLM_RUN_FILES.settings}, as in the folder of a run of vLLM`;
/** More files than this in a folder are no set of sessions. */
const FILES_MAX = 100_000;

/** Detects the format by name and content; throws ImportError naming the accepted ones. */
export async function detectFormat(path: string): Promise<DetectedFormat> {
  let isFolder: boolean;
  try {
    isFolder = (await stat(path)).isDirectory();
  } catch (error) {
    throw new ImportError(`${path}: ${unreadable(error)}`);
  }
  if (isFolder) return folderFormat(path);
  const name = path.replace(/\.(gz|zst)$/, "");
  if (/\.ya?ml$/.test(name)) return { format: await specFormat(path), files: [path] };
  if (name.endsWith(".json") && name === path) return { format: await jsonFormat(path), files: [path] };
  const format = await lineFormat(path);
  if (format === undefined) throw new ImportError(`${path}: not a workload that can be read; ${ACCEPTED}`);
  return { format, files: [path] };
}

/** A list of results, a list of conversations, or one session. */
async function jsonFormat(path: string): Promise<WorkloadFormat> {
  let begin = "";
  let lines = 0;
  for await (const line of readLines(path)) {
    begin += line.text;
    if (++lines === LINES_TRIED || begin.length > BEGIN_CHARS) break;
  }
  if (!begin.trimStart().startsWith("["))
    return VLLM_BENCH_KEYS.every((key) => begin.includes(key)) ? "vllm-bench" : "weka";
  return BLIS_RESULT_KEYS.every((key) => begin.includes(key)) ? "blis-result" : "sharegpt";
}

async function folderFormat(path: string): Promise<DetectedFormat> {
  const names = (await readdir(path)).sort();
  if (names.length > FILES_MAX) throw new ImportError(`${path}: expected at most ${FILES_MAX} files in this folder`);
  if (names.includes(VLLM_RUN_FILES.settings) && names.includes(VLLM_RUN_FILES.requests))
    return { format: "vllm-run", files: [path] };
  if (names.includes(VLLM_RUN_FILES.settings)) throw new ImportError(`${path}: ${HALF_A_RUN}; ${ACCEPTED}`);
  const sessions = names.filter((name) => name.endsWith(".json")).map((name) => join(path, name));
  if (sessions.length > 0) return { format: "weka", files: sessions };
  const texts = names.filter((name) => /\.jsonl(\.gz|\.zst)?$/.test(name)).map((name) => join(path, name));
  if (texts[0] !== undefined && (await lineFormat(texts[0])) === "dynamo") return { format: "dynamo", files: texts };
  for (const file of texts) {
    const format = await lineFormat(file);
    if (format !== "lmcache") throw new ImportError(`${file}: expected an lmcache file in a folder; ${ACCEPTED}`);
  }
  if (texts.length === 0) throw new ImportError(`${path}: no .json or .jsonl file in this folder; ${ACCEPTED}`);
  return { format: "lmcache", files: texts };
}

async function lineFormat(path: string): Promise<WorkloadFormat | undefined> {
  let tried = 0;
  for await (const line of readLines(path)) {
    if (line.text.trim() === AZURE_HEADER) return "azure";
    if (line.text.startsWith(BLIS_COLUMNS.slice(0, 3).join(","))) return "blis";
    const record = parseRecord(line.text);
    if (typeof record !== "string") {
      if (record["format"] === WORKLOAD_FILE_FORMAT) return "workload";
      if (record["schema"] === DYNAMO_SCHEMA) return "dynamo";
      if (OTEL_SPANS_KEY in record) return "otel-spans";
      if ("hash_ids" in record && "input_length" in record) return "chat_id" in record ? "bailian" : "mooncake";
      const log = accessLogOf(record);
      if (log !== undefined) return log;
      if ("input_tok_ids" in record) return "token-ids";
      if ("input" in record && "output" in record && "session_id" in record) return "lmcache";
    }
    if (++tried >= LINES_TRIED) return undefined;
  }
  return undefined;
}
