import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readServingSimTables } from "#cli/calibrate/kernel-tables/serving-sim.ts";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import { createEngine } from "#engine/create-engine.ts";
import type { ExpertRow } from "#engine/step-time/expert-time.ts";
import type { KernelTableSpec } from "#engine/step-time/kernel-table.ts";
import { readVllmParallelism } from "#trace/import/vllm-parallelism.ts";
import type { Comparison } from "./errors.ts";
import { RunMeta } from "./meta.ts";

interface GpuRequest {
  readonly input_toks: number;
  readonly output_toks: number;
  /** Wall clock of the client, and three times on the engine's clock; seconds. */
  readonly arrival_time: number;
  readonly queued_ts: number;
  readonly first_token_ts: number;
  readonly last_token_ts: number;
}

export interface GpuRun {
  readonly requests: readonly GpuRequest[];
  readonly hashes: readonly Int32Array[];
  /** The engine's clock minus the client's. */
  readonly offset: number;
  readonly kernels: Omit<KernelTableSpec, "layers">;
  /** Of a mixture of experts: measured times of a layer's experts. */
  readonly expertRows: readonly ExpertRow[] | undefined;
  /** What of the engine is not simulated. */
  readonly notes: readonly string[];
  /** Undefined where the run did not record it. */
  readonly kvBlocks: number | undefined;
  readonly sequencesMax: number;
  readonly batchTokensMax: number;
  /** The settings of the engine, as meta.json has them; where it names no KV blocks, enough for the greatest batch. */
  readonly engine: EngineConfig;
}

export function readGpuRun(folder: string): GpuRun {
  const meta = new RunMeta(folder);
  const jsonLines = (file: string) => {
    const lines = readFileSync(join(folder, file), "utf8").trim().split("\n");
    return lines.map((line): unknown => JSON.parse(line));
  };
  const requests = jsonLines("requests.jsonl") as GpuRequest[];
  const blockTokens = meta.count(["kv_cache.block_size", "engine_kwargs.block_size"], 16);
  const kvBlocks = meta.count(["kv_cache.num_gpu_blocks"], 0);
  const sequencesMax = meta.count(["engine_kwargs.max_num_seqs"]);
  const batchTokensMax = meta.count(["engine_kwargs.max_num_batched_tokens"]);
  const { dataParallel, notes } = readVllmParallelism(join(folder, "meta.json"), (key) =>
    meta.raw([`resolved_config.parallel_config.${key}`, `resolved_config.${key}`, `engine_kwargs.${key}`]),
  );
  const { kernels, expertRows } = readServingSimTables([join(folder, "kernels")]);
  const texts = jsonLines("workload.jsonl") as { input_tok_ids: number[]; output_tok_ids: number[] }[];
  return {
    requests,
    hashes: chains(
      texts.map((text) => [...text.input_tok_ids, ...text.output_tok_ids]),
      blockTokens,
    ),
    offset: Math.min(...requests.map((request) => request.queued_ts - request.arrival_time)),
    kernels: { ...kernels, graphTokensMax: graphTokensMaxOf(meta, sequencesMax) },
    expertRows,
    notes,
    kvBlocks: kvBlocks === 0 ? undefined : kvBlocks,
    sequencesMax,
    batchTokensMax,
    engine: engineDefaults({
      blockTokens,
      kvBlocks: kvBlocks === 0 ? blocksOfGreatestBatch(requests, sequencesMax, blockTokens) : kvBlocks,
      sequencesMax,
      batchTokensMax,
      dataParallel,
      modelTokensMax: meta.count(["engine_kwargs.max_model_len"], Infinity),
      longPrefillTokens: meta.count([`${SCHEDULER}.long_prefill_token_threshold`], 0),
      prefixCaching: meta.flag(["kv_cache.enable_prefix_caching"], true),
      asyncScheduling: meta.flag([`${SCHEDULER}.async_scheduling`], true),
      reserveFullPrompt: meta.flag([`${SCHEDULER}.scheduler_reserve_full_isl`], true),
    }),
  };
}

/** vLLM makes CUDA graphs for up to twice max_num_seqs, 512 at most, unless asked otherwise. */
function graphTokensMaxOf(meta: RunMeta, sequencesMax: number): number {
  return meta.count(["resolved_config.compilation_config.max_cudagraph_capture_size"], Math.min(2 * sequencesMax, 512));
}

const SCHEDULER = "resolved_config.scheduler_config";

/** No batch of these requests lacks blocks, and as many again remember what was computed. */
function blocksOfGreatestBatch(requests: readonly GpuRequest[], sequencesMax: number, blockTokens: number): number {
  const blocks = requests.map(({ input_toks, output_toks }) => Math.ceil((input_toks + output_toks) / blockTokens));
  const greatest = blocks.sort((a, b) => b - a).slice(0, sequencesMax);
  return 2 * greatest.reduce((sum, count) => sum + count, 1);
}

/** Equal prefixes of blocks get equal words. */
function chains(texts: readonly (readonly number[])[], blockTokens: number): Int32Array[] {
  const numbers = new Map<string, number>();
  return texts.map((tokens) => {
    const hashes = new Int32Array(2 * Math.floor(tokens.length / blockTokens));
    let parent = 0;
    for (let i = 0; i < hashes.length / 2; i++) {
      const key = `${parent}:${tokens.slice(blockTokens * i, blockTokens * (i + 1)).join(",")}`;
      parent = numbers.get(key) ?? numbers.size + 1;
      numbers.set(key, parent);
      hashes[2 * i] = parent;
    }
    return hashes;
  });
}

export interface GpuReplay {
  readonly firstAt: readonly number[];
  readonly lastAt: readonly number[];
  readonly preemptions: number;
  readonly cachedTokens: number;
}

/** The run's requests through an engine, by arrival. */
export function replayGpuRun(run: GpuRun, overrides: Partial<EngineConfig>): GpuReplay {
  const firstAt: number[] = [];
  const lastAt: number[] = [];
  const engine = createEngine(
    { ...run.engine, ...overrides },
    {
      token: (at, { id }, tokens) => {
        if (tokens === 1) firstAt[Number(id)] = at;
        lastAt[Number(id)] = at;
      },
      finished: () => undefined,
    },
  );
  run.requests.forEach((request, number) => {
    engine.submit(Math.round(arrival(run, request) * 1e6), {
      id: String(number),
      promptTokens: request.input_toks,
      outputTokens: request.output_toks,
      hashes: run.hashes[number] ?? new Int32Array(0),
      priority: 0,
      deadlineAt: undefined,
      cacheRead: true,
    });
  });
  for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) engine.advanceTo(at);
  const gauges = engine.gauges();
  return { firstAt, lastAt, preemptions: gauges.preemptions, cachedTokens: gauges.prefixHitsTokens };
}

/** Seconds since the first request of the run arrived. */
function arrival(run: GpuRun, request: GpuRequest): number {
  return request.arrival_time - Math.min(...run.requests.map((other) => other.arrival_time));
}

/** The requests of which `chosen` is true; they are numbered by arrival. */
export function compareGpuRun(run: GpuRun, replay: GpuReplay, chosen: (number: number) => boolean): Comparison[] {
  const numbers = run.requests.map((_, number) => number).filter((number) => chosen(number));
  const request = (number: number) => run.requests[number] as GpuRequest;
  const gaps = (number: number) => Math.max(1, request(number).output_toks - 1);
  const start = (number: number) => request(number).arrival_time + run.offset;
  const from = (number: number) => arrival(run, request(number)) * 1e3;
  const firstMs = (number: number) => (replay.firstAt[number] ?? 0) / 1e3;
  const lastMs = (number: number) => (replay.lastAt[number] ?? 0) / 1e3;
  return [
    {
      name: "TTFT",
      real: numbers.map((number) => (request(number).first_token_ts - start(number)) * 1e3),
      predicted: numbers.map((number) => firstMs(number) - from(number)),
    },
    {
      name: "TPOT",
      real: numbers.map((number) => {
        return ((request(number).last_token_ts - request(number).first_token_ts) * 1e3) / gaps(number);
      }),
      predicted: numbers.map((number) => (lastMs(number) - firstMs(number)) / gaps(number)),
    },
    {
      name: "E2E",
      real: numbers.map((number) => (request(number).last_token_ts - start(number)) * 1e3),
      predicted: numbers.map((number) => lastMs(number) - from(number)),
    },
  ];
}
