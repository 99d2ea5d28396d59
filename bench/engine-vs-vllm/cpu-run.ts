import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import { RunMeta } from "./meta.ts";
import { hasFile, listOf, readJsonLines, readJsonLists, readNumberRows, type RunLine } from "./run-files.ts";

/** One request of a recorded run; times in seconds since the run began. */
export interface RunRequest {
  readonly send: number;
  readonly group: number;
  readonly prefixTokens: number;
  readonly text: number;
  readonly promptTokens: number;
  /** Of a request that its client took back: all that it asked for. */
  readonly outputTokens: number;
  /** Undefined where the engine did not report it, as of a request that was taken back. */
  readonly cachedTokens: number | undefined;
  readonly firstAt: number;
  readonly lastAt: number;
  readonly priority: number;
  /** When the scheduler got it, where that was recorded (`queued`). */
  readonly queuedAt: number | undefined;
  /** When its client went away (`aborted_at`), or, where that was recorded, when the scheduler let it go (`dropped`). */
  readonly abortedAt: number | undefined;
}

/**
 * One engine step as vLLM logged it. Requests that compute their prompt again after a preemption count as decodes
 * there.
 */
export interface RunStep {
  /** Microseconds since the run began. */
  readonly startAt: number;
  readonly micros: number;
  readonly logAt: number;
  readonly prefills: number;
  readonly prefillTokens: number;
  readonly decodes: number;
  readonly decodeTokens: number;
}

export interface CpuRun {
  readonly requests: readonly RunRequest[];
  readonly steps: readonly RunStep[];
  /** KV blocks that were made hittable, and that were overwritten; undefined where no events were recorded. */
  readonly blocks: { readonly stored: number; readonly removed: number } | undefined;
  readonly preemptions: number;
  /** The settings of the engine, as meta.json has them. */
  readonly engine: EngineConfig;
}

/** The log line is written about half a millisecond after the step has ended. */
const LOG_DELAY_MICROS = 500;

/**
 * Reads a folder with meta.json, requests.jsonl, iterations.csv and, where there are any, kv_events.jsonl. Requests that
 * the engine refused are left out. Columns `start_s` and `end_s` of iterations.csv, where there are any, are the times
 * when a step was composed and when its result was there; else they follow from the log line's. Throws an error that
 * names file, line and field.
 */
export function readCpuRun(folder: string): CpuRun {
  const meta = new RunMeta(folder);
  return {
    requests: readJsonLines(folder, "requests.jsonl").filter(wasServed).map(requestOf),
    steps: readNumberRows(folder, "iterations.csv").map(stepOf),
    blocks: hasFile(folder, "kv_events.jsonl") ? blocksOf(readJsonLists(folder, "kv_events.jsonl")) : undefined,
    preemptions: meta.amount("preemptions"),
    engine: engineOf(meta),
  };
}

function engineOf(meta: RunMeta): EngineConfig {
  const policy = meta.text("engine.scheduling_policy", ["fcfs", "priority"], "fcfs");
  return engineDefaults({
    blockTokens: meta.count(["engine.block_size"]),
    kvBlocks: meta.count(["engine.num_gpu_blocks"]),
    sequencesMax: meta.count(["engine.max_num_seqs"]),
    batchTokensMax: meta.count(["engine.max_num_batched_tokens"]),
    modelTokensMax: meta.count(["engine.max_model_len"]),
    longPrefillTokens: meta.count(["engine.long_prefill_token_threshold"], 0),
    chunkedPrefill: meta.flag(["engine.enable_chunked_prefill", "engine.chunked_prefill"], true),
    watermark: meta.amount("engine.watermark", 0),
    prefixCaching: meta.flag(["engine.prefix_caching"], true),
    reserveFullPrompt: meta.flag(["engine.scheduler_reserve_full_isl"], true),
    asyncScheduling: meta.flag(["engine.async_scheduling"], false),
    scheduler: policy === "fcfs" ? "fcfs" : "priority-fcfs",
    preemption: policy === "fcfs" ? "tail" : "lowest-priority",
  });
}

/** Whether the scheduler had it: refused ones say so by their status, and those that failed have no answer. */
function wasServed(line: RunLine): boolean {
  return (line.optional("status") ?? 200) === 200;
}

function requestOf(line: RunLine): RunRequest {
  const abortedAt = line.optional("dropped") ?? line.optional("aborted_at");
  const isWhole = abortedAt === undefined;
  return {
    send: line.number("send"),
    group: line.number("group"),
    prefixTokens: line.count("prefix_len"),
    text: line.number("unique_id"),
    promptTokens: line.count("prompt_tokens", 1),
    outputTokens: line.count(isWhole ? "completion_tokens" : "max_tokens", 1),
    cachedTokens: line.optional("cached_tokens"),
    firstAt: isWhole ? line.number("first_chunk") : NaN,
    lastAt: isWhole ? lastChunkAt(line) : NaN,
    priority: line.optional("priority") ?? 0,
    queuedAt: line.optional("queued"),
    abortedAt,
  };
}

/** Time of the last of `[[time, tokens so far], ...]`. */
function lastChunkAt(line: RunLine): number {
  const at = listOf(listOf(line.record["chunks"])?.at(-1))?.[0];
  if (typeof at === "number") return at;
  throw line.problem("chunks", "a list of [time, tokens so far]");
}

function stepOf(line: RunLine): RunStep {
  const logAt = Math.round(line.number("log_time_s") * 1e6);
  const elapsed = Math.round(line.number("elapsed_ms") * 1e3);
  const end = line.optional("end_s");
  const start = line.optional("start_s");
  const endAt = end === undefined ? logAt - LOG_DELAY_MICROS : Math.round(end * 1e6);
  const startAt = start === undefined ? endAt - elapsed : Math.round(start * 1e6);
  return {
    startAt,
    micros: start === undefined ? elapsed : endAt - startAt,
    logAt,
    prefills: line.count("context_requests"),
    prefillTokens: line.count("context_tokens"),
    decodes: line.count("generation_requests"),
    decodeTokens: line.optional("generation_tokens") ?? line.count("generation_requests"),
  };
}

/** Of lines `[sequence, time, time, [["S", hashes, ...] | ["R", hashes] | ["C"], ...]]`. */
function blocksOf(lines: readonly (readonly unknown[])[]): CpuRun["blocks"] {
  let stored = 0;
  let removed = 0;
  for (const event of lines.flatMap((line) => listOf(line[3]) ?? [])) {
    const [kind, hashes] = listOf(event) ?? [];
    const count = listOf(hashes)?.length ?? 0;
    if (kind === "S") stored += count;
    if (kind === "R") removed += count;
  }
  return { stored, removed };
}
