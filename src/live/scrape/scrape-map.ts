import { atOnce } from "../base/loop-turn.ts";
import { readExposition } from "./exposition.ts";

/** What one engine (one data-parallel rank) reports on its metrics page; NaN is not reported. Times in seconds. */
export type ScrapedSignal =
  | "running"
  | "waiting"
  | "kvUtilization"
  | "cacheQueries"
  | "cacheHits"
  | "cacheHitRatio"
  | "promptTokens"
  | "promptTokensCached"
  | "generationTokens"
  | "preemptions"
  | "steps"
  | "ttftSum"
  | "ttftCount"
  | "tpotSum"
  | "tpotCount"
  | "blockTokens"
  | "blocks"
  | "capacityTokens"
  | "asleep"
  | "emptied";

/**
 * How the samples of one name within one rank become one number: `sum` over models and sources, `max` where several
 * tensor-parallel ranks or priorities repeat or split the same figure.
 */
type Fold = "sum" | "max";

/**
 * Names that are read, newest spelling first for each signal; the first spelling that a page has counts, since vLLM 0.9
 * and 0.10 wrote both.
 *
 * vLLM: v1/metrics/loggers.py, pages of 0.32.0 and the names before 0.9. SGLang: its production metrics page;
 * `page_size` and `num_pages` from 0.5.11, labels of `cache_config_info` before.
 */
const SPELLINGS: readonly (readonly [name: string, signal: ScrapedSignal, fold: Fold])[] = [
  ["vllm:num_requests_running", "running", "sum"],
  ["vllm:num_requests_waiting", "waiting", "sum"],
  ["vllm:kv_cache_usage_perc", "kvUtilization", "max"],
  ["vllm:gpu_cache_usage_perc", "kvUtilization", "max"],
  ["vllm:prefix_cache_queries_total", "cacheQueries", "sum"],
  ["vllm:gpu_prefix_cache_queries_total", "cacheQueries", "sum"],
  ["vllm:prefix_cache_hits_total", "cacheHits", "sum"],
  ["vllm:gpu_prefix_cache_hits_total", "cacheHits", "sum"],
  ["vllm:gpu_prefix_cache_hit_rate", "cacheHitRatio", "max"],
  ["vllm:prompt_tokens_total", "promptTokens", "sum"],
  ["vllm:generation_tokens_total", "generationTokens", "sum"],
  ["vllm:num_preemptions_total", "preemptions", "sum"],
  ["vllm:iteration_tokens_total_count", "steps", "sum"],
  ["vllm:time_to_first_token_seconds_sum", "ttftSum", "sum"],
  ["vllm:time_to_first_token_seconds_count", "ttftCount", "sum"],
  ["vllm:inter_token_latency_seconds_sum", "tpotSum", "sum"],
  ["vllm:inter_token_latency_seconds_count", "tpotCount", "sum"],
  ["vllm:time_per_output_token_seconds_sum", "tpotSum", "sum"],
  ["vllm:time_per_output_token_seconds_count", "tpotCount", "sum"],
  ["sglang:num_running_reqs", "running", "max"],
  ["sglang:num_queue_reqs", "waiting", "max"],
  ["sglang:token_usage", "kvUtilization", "max"],
  ["sglang:cache_hit_rate", "cacheHitRatio", "max"],
  ["sglang:prompt_tokens_total", "promptTokens", "sum"],
  ["sglang:cached_tokens_total", "promptTokensCached", "sum"],
  ["sglang:generation_tokens_total", "generationTokens", "sum"],
  ["sglang:num_retracted_requests_total", "preemptions", "max"],
  ["sglang:time_to_first_token_seconds_sum", "ttftSum", "sum"],
  ["sglang:time_to_first_token_seconds_count", "ttftCount", "sum"],
  ["sglang:inter_token_latency_seconds_sum", "tpotSum", "sum"],
  ["sglang:inter_token_latency_seconds_count", "tpotCount", "sum"],
  ["sglang:time_per_output_token_seconds_sum", "tpotSum", "sum"],
  ["sglang:time_per_output_token_seconds_count", "tpotCount", "sum"],
  ["sglang:max_total_num_tokens", "capacityTokens", "max"],
  ["sglang:page_size", "blockTokens", "max"],
  ["sglang:num_pages", "blocks", "max"],
];

const BY_SOURCE = "vllm:prompt_tokens_by_source_total";
const VLLM_CACHE = "vllm:cache_config_info";
const SGLANG_CACHE = "sglang:cache_config_info";
const ADAPTERS = "vllm:lora_requests_info";
/** A series for each of its states, of which "awake" is 0 while the engine sleeps, at whatever level. */
const SLEEP_STATE = "vllm:engine_sleep_state";
const PROCESS_START = "process_start_time_seconds";

interface Spelling {
  readonly signal: ScrapedSignal;
  readonly fold: Fold;
  readonly order: number;
}

const BY_NAME: ReadonlyMap<string, Spelling> = new Map(
  SPELLINGS.map(([name, signal, fold], order) => [name, { signal, fold, order }]),
);
const WANTED: ReadonlySet<string> = new Set([
  ...BY_NAME.keys(),
  BY_SOURCE,
  VLLM_CACHE,
  SGLANG_CACHE,
  ADAPTERS,
  SLEEP_STATE,
  PROCESS_START,
]);

export interface Adapters {
  readonly running: readonly string[];
  readonly waiting: readonly string[];
  readonly max: number | undefined;
}

/** A metrics page, read. */
export interface EnginePage {
  /** By data-parallel rank as the page labels it, "" where it does not. */
  readonly ranks: ReadonlyMap<string, RankSignals>;
  readonly adapters: Adapters | undefined;
  /** Start of the API server, seconds since 1970; undefined in its multiprocess mode. */
  readonly processStart: number | undefined;
  /** Wanted lines that could not be read, or are of a rank too many. */
  readonly malformed: number;
}

/** Data-parallel ranks of one page, and adapters of one list of its; what is beyond is left out. */
const RANKS_MAX = 1_024;
const ADAPTERS_MAX = 1_024;

/** Reads a short metrics page of vLLM; what is not known there or cannot be read is left out. */
export function readEnginePage(text: string): EnginePage {
  return atOnce(enginePage(text));
}

/** The same of a page that may be long: pauses after each slice. */
export function* enginePage(text: string): Generator<void, EnginePage> {
  const ranks = new Map<string, RankSignals>();
  let adapters: Adapters | undefined;
  let adaptersAt = -Infinity;
  let processStart: number | undefined;
  let ranksLeftOut = 0;
  const malformed = yield* readExposition(text, WANTED, (name, labels, value) => {
    if (name === PROCESS_START) {
      processStart = value;
    } else if (name === ADAPTERS) {
      // Every combination of adapters that ever ran keeps its series; the value is its time, and the newest holds.
      if (value <= adaptersAt) return;
      adaptersAt = value;
      adapters = readAdapters(labels);
    } else {
      const rank = labels.get("engine") ?? labels.get("dp_rank") ?? "";
      let signals = ranks.get(rank);
      if (signals === undefined) {
        if (ranks.size >= RANKS_MAX) {
          ranksLeftOut++;
          return;
        }
        ranks.set(rank, (signals = new RankSignals()));
      }
      signals.take(name, labels, value);
    }
  });
  return { ranks, adapters, processStart, malformed: malformed + ranksLeftOut };
}

/** One rank's signals, before ranks are put together. */
export class RankSignals {
  readonly #values = new Map<ScrapedSignal, number>();
  readonly #orders = new Map<ScrapedSignal, number>();
  /** Whose words these are; the engines count their blocks differently. */
  dialect: "vllm" | "sglang" = "vllm";

  /** NaN where the page does not say. */
  get(signal: ScrapedSignal): number {
    return this.#values.get(signal) ?? NaN;
  }

  take(name: string, labels: ReadonlyMap<string, string>, value: number): void {
    if (Number.isNaN(value)) return;
    this.dialect = name.startsWith("sglang:") ? "sglang" : "vllm";
    if (name === BY_SOURCE) {
      if (labels.get("source") === "local_cache_hit") this.#fold("promptTokensCached", "sum", 0, value);
    } else if (name === SLEEP_STATE) {
      const isAwake = labels.get("sleep_state") === "awake";
      this.#fold(isAwake ? "asleep" : "emptied", "max", 0, isAwake ? 1 - value : value);
    } else if (name === VLLM_CACHE) {
      this.#takeInteger("blockTokens", labels.get("block_size"));
      this.#takeInteger("blocks", labels.get("num_gpu_blocks"));
      this.#takeInteger("capacityTokens", labels.get("kv_cache_size_tokens"));
    } else if (name === SGLANG_CACHE) {
      this.#takeInteger("blockTokens", labels.get("page_size"));
      this.#takeInteger("blocks", labels.get("num_pages"));
    } else {
      const spelling = BY_NAME.get(name);
      if (spelling !== undefined) this.#fold(spelling.signal, spelling.fold, spelling.order, value);
    }
  }

  /** A label holds a number as Python prints it; "None" is unknown. */
  #takeInteger(signal: ScrapedSignal, text: string | undefined): void {
    const value = Number(text);
    if (Number.isSafeInteger(value) && value > 0) this.#fold(signal, "max", SPELLINGS.length, value);
  }

  #fold(signal: ScrapedSignal, fold: Fold, order: number, value: number): void {
    const known = this.#orders.get(signal);
    if (known !== undefined && known < order) return;
    const before = known === order ? this.#values.get(signal)! : undefined;
    this.#orders.set(signal, order);
    this.#values.set(signal, before === undefined ? value : fold === "sum" ? before + value : Math.max(before, value));
  }
}

function readAdapters(labels: ReadonlyMap<string, string>): Adapters {
  const max = Number(labels.get("max_lora") ?? NaN);
  return {
    running: readNames(labels.get("running_lora_adapters")),
    waiting: readNames(labels.get("waiting_lora_adapters")),
    max: Number.isSafeInteger(max) && max > 0 ? max : undefined,
  };
}

function readNames(list: string | undefined): string[] {
  return (list ?? "")
    .split(",", ADAPTERS_MAX)
    .map((name) => name.trim())
    .filter((name) => name !== "");
}
