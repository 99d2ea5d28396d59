import { type Load, REPORTED_MAX } from "#core/endpoint/endpoint.ts";
import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import type { EnginePage, RankSignals, ScrapedSignal } from "./scrape-map.ts";

/** One scrape of one endpoint: the ranks that it stands for, put together. */
export interface SignalReading {
  readonly at: Micros;
  readonly page: EnginePage;
  readonly ranks: readonly RankSignals[];
}

/**
 * The part of a page that belongs to an endpoint: one rank where it is addressed by rank, else all of them. Undefined
 * when the page does not say how many requests run there: then it is no engine's page, or not of that rank.
 */
export function readingOf(
  at: Micros,
  page: EnginePage,
  dataParallelRank: number | undefined,
): SignalReading | undefined {
  const ranks = ranksOf(page, dataParallelRank);
  return ranks.some(isEngine) ? { at, page, ranks } : undefined;
}

function isEngine(rank: RankSignals): boolean {
  return !Number.isNaN(rank.get("running"));
}

function ranksOf(page: EnginePage, dataParallelRank: number | undefined): RankSignals[] {
  const ranks = [...page.ranks.values()];
  // A page of one engine is that of a rank behind its own address, whatever its label is.
  if (dataParallelRank === undefined || ranks.filter(isEngine).length === 1) return ranks;
  const rank = page.ranks.get(String(dataParallelRank));
  return rank === undefined ? [] : [rank];
}

/** Ranks that the endpoint spreads requests over by itself; 1 where it is one of them. */
export function dataParallelOf(reading: SignalReading): number {
  return reading.ranks.filter(isEngine).length;
}

/** The signals of `now`, with means and rates over the time since `before`; those are undefined without `before`. */
export function loadOf(now: SignalReading, before: SignalReading | undefined): Load {
  const { adapters } = now.page;
  return {
    running: known(total(now, "running")),
    waiting: known(total(now, "waiting")),
    kvUtilization: share(mean(now, "kvUtilization")),
    prefixHitRatio: share(prefixHitRatio(now)),
    ttftMicros: before && meanMicros(now, before, "ttftSum", "ttftCount"),
    tpotMicros: before && meanMicros(now, before, "tpotSum", "tpotCount"),
    tokensPerSecond: before && tokensPerSecond(now, before),
    adaptersRunning: adapters?.running,
    adaptersWaiting: adapters?.waiting,
    adaptersMax: adapters?.max,
    watts: undefined,
    smUtilization: undefined,
  };
}

/**
 * Whether its engine sleeps: one of its ranks does, since who balances them may send a request to that one. "emptied": its
 * memory was given up with it. Undefined where the page does not say.
 */
export function sleepOf(reading: SignalReading): "awake" | "paused" | "emptied" | undefined {
  const asleep = Math.max(...reading.ranks.map((rank) => rank.get("asleep")).filter((value) => !Number.isNaN(value)));
  if (asleep === -Infinity) return undefined;
  if (asleep <= 0) return "awake";
  return reading.ranks.some((rank) => rank.get("emptied") > 0) ? "emptied" : "paused";
}

const COUNTERS: readonly ScrapedSignal[] = ["promptTokens", "generationTokens", "ttftCount", "cacheQueries"];

/**
 * Whether the engine was started anew in between, which empties its cache: a counter went back, or the process is
 * another one. Python writes the start with a resolution of 10 ms.
 */
export function restarted(now: SignalReading, before: SignalReading): boolean {
  const started = now.page.processStart;
  const startedBefore = before.page.processStart;
  if (started !== undefined && startedBefore !== undefined && Math.abs(started - startedBefore) > 0.5) return true;
  return COUNTERS.some((signal) => total(now, signal) < total(before, signal));
}

/** What only the engine's own work changes; requests that arrive do not. */
const WORK: readonly ScrapedSignal[] = [
  "steps",
  "promptTokens",
  "generationTokens",
  "ttftCount",
  "tpotCount",
  "cacheQueries",
  "preemptions",
  "kvUtilization",
];
/** One of these is there wherever work shows in the course of it, and not only as a request ends. */
const WORK_SHOWN: readonly ScrapedSignal[] = ["steps", "generationTokens"];

/** Whether the engine worked between two pages; undefined where its pages do not show that. */
export function workedBetween(now: SignalReading, before: SignalReading): boolean | undefined {
  if (!WORK_SHOWN.some((signal) => !Number.isNaN(total(now, signal)))) return undefined;
  return WORK.some((signal) => !Object.is(total(now, signal), total(before, signal)));
}

/**
 * Room for reusable keys and values, in tokens. One block of vLLM's pool is its null block and never holds any, so
 *
 *     capacity = (blocks - 1) * blockTokens
 *
 * `kv_cache_size_tokens` is blocks * blockTokens of one rank. `num_gpu_blocks` is the sum over the ranks of a page: a
 * page of two ranks with 2,048 blocks each has 4,096 in both series. SGLang reports the usable tokens themselves.
 */
export function capacityTokensOf(reading: SignalReading): number | undefined {
  const ranksOnPage = [...reading.page.ranks.values()].filter((rank) => rank.get("blocks") > 0).length;
  return known(sumOf(reading.ranks.map((rank) => rankCapacityTokens(rank, ranksOnPage))));
}

/** Tokens per block of the engine's cache, in its smallest rank; undefined where its page does not say. */
export function blockTokensOf(reading: SignalReading): number | undefined {
  const sizes = reading.ranks
    .map((rank) => rank.get("blockTokens"))
    .filter((size) => Number.isInteger(size) && size > 0);
  return sizes.length === 0 ? undefined : Math.min(...sizes);
}

function rankCapacityTokens(rank: RankSignals, ranksOnPage: number): number {
  const blockTokens = rank.get("blockTokens");
  const isVllm = rank.dialect === "vllm";
  const reported = rank.get("capacityTokens");
  const tokens = reported > 0 ? reported : (rank.get("blocks") / (isVllm ? ranksOnPage : 1)) * blockTokens;
  const usable = Math.floor(tokens) - (isVllm && blockTokens > 0 ? blockTokens : 0);
  return usable > 0 ? usable : NaN;
}

/**
 * Engines that count tokens by source count each once, at admission; the counters of older vLLM repeat a prompt at every
 * attempt to admit it.
 */
function prefixHitRatio(reading: SignalReading): number {
  const cached = total(reading, "promptTokensCached") / total(reading, "promptTokens");
  if (!Number.isNaN(cached)) return cached;
  const hits = total(reading, "cacheHits") / total(reading, "cacheQueries");
  return Number.isNaN(hits) ? mean(reading, "cacheHitRatio") : hits;
}

/** Undefined when nothing was counted in between: an idle engine has no latency, not a latency of zero. */
function meanMicros(
  now: SignalReading,
  before: SignalReading,
  sum: ScrapedSignal,
  count: ScrapedSignal,
): number | undefined {
  const counted = total(now, count) - total(before, count);
  const seconds = total(now, sum) - total(before, sum);
  return counted > 0 ? known(Math.round((seconds / counted) * MICROS_PER_SECOND)) : undefined;
}

function tokensPerSecond(now: SignalReading, before: SignalReading): number | undefined {
  const elapsed = (now.at - before.at) / MICROS_PER_SECOND;
  const tokens = (reading: SignalReading) =>
    sumOf([total(reading, "promptTokens"), total(reading, "generationTokens")]);
  const rate = (tokens(now) - tokens(before)) / elapsed;
  return elapsed > 0 ? known(rate) : undefined;
}

function total(reading: SignalReading, signal: ScrapedSignal): number {
  return sumOf(reading.ranks.map((rank) => rank.get(signal)));
}

function mean(reading: SignalReading, signal: ScrapedSignal): number {
  const values = reading.ranks.map((rank) => rank.get(signal)).filter((value) => !Number.isNaN(value));
  return sumOf(values) / values.length;
}

/** NaN is unknown and adds nothing; all unknown is unknown. */
function sumOf(values: readonly number[]): number {
  let sum = NaN;
  for (const value of values) if (!Number.isNaN(value)) sum = Number.isNaN(sum) ? value : sum + value;
  return sum;
}

function known(value: number): number | undefined {
  return value >= 0 && value <= REPORTED_MAX ? value : undefined;
}

function share(value: number): number | undefined {
  return Number.isFinite(value) ? Math.min(1, Math.max(0, value)) : undefined;
}
