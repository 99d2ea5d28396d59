import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import { Engine } from "#engine/engine.ts";
import type { BatchShape } from "#engine/step-time/batch-shape.ts";
import type { Comparison } from "./errors.ts";
import { RunMeta } from "./meta.ts";

/** One request of a recorded run; times in seconds. */
export interface RunRequest {
  readonly send: number;
  readonly group: number;
  readonly prefix_len: number;
  readonly unique_id: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cached_tokens: number;
  readonly first_chunk: number;
  readonly chunks: readonly (readonly [at: number, tokens: number])[];
}

/** One engine step as vLLM logged it. */
export interface RunStep {
  readonly logAt: number;
  readonly prefills: number;
  readonly prefillTokens: number;
  readonly decodes: number;
  readonly elapsedMs: number;
}

export interface CpuRun {
  readonly requests: readonly RunRequest[];
  readonly steps: readonly RunStep[];
  /** KV blocks that were made hittable, and that were overwritten. */
  readonly blocksStored: number;
  readonly blocksRemoved: number;
  readonly preemptions: number;
  /** The settings of the engine, as meta.json tells them. */
  readonly engine: EngineConfig;
}

/** A request is visible to the scheduler 5.5 ms after it was sent; a token reaches the client 1.6 ms after its step. */
export const VISIBLE_AFTER_MICROS = 5500;
const TOKEN_DELAY_MICROS = 1600;
/** The log line is written about half a millisecond after the step has ended. */
export const LOG_DELAY_MS = 0.5;

export function readCpuRun(folder: string): CpuRun {
  const lines = (file: string) => readFileSync(join(folder, file), "utf8").trim().split("\n");
  const meta = new RunMeta(folder);
  let blocksStored = 0;
  let blocksRemoved = 0;
  for (const line of lines("kv_events.jsonl")) {
    const [, , , events] = JSON.parse(line) as [number, number, number, [string, string[]][]];
    for (const [kind, hashes] of events) {
      if (kind === "S") blocksStored += hashes.length;
      if (kind === "R") blocksRemoved += hashes.length;
    }
  }
  return {
    requests: lines("requests.jsonl").map((line) => JSON.parse(line) as RunRequest),
    steps: stepsOf(lines("iterations.csv")),
    blocksStored,
    blocksRemoved,
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
    prefixCaching: meta.flag(["engine.prefix_caching"], true),
    asyncScheduling: meta.flag(["engine.async_scheduling"], false),
    scheduler: policy === "fcfs" ? "fcfs" : "priority-fcfs",
    preemption: policy === "fcfs" ? "tail" : "lowest-priority",
  });
}

/** A row a step, its columns by name. */
function stepsOf([head = "", ...rows]: readonly string[]): RunStep[] {
  const columns = head.split(",");
  const column = (name: string) => {
    const place = columns.indexOf(name);
    if (place < 0) throw new Error(`iterations.csv: expected a column ${name}, got ${head}`);
    return place;
  };
  const places = ["log_time_s", "context_requests", "context_tokens", "generation_requests", "elapsed_ms"].map(column);
  return rows.map((row) => {
    const cells = row.split(",");
    const [logAt, prefills, prefillTokens, decodes, elapsedMs] = places.map((place) => Number(cells[place]));
    return {
      logAt: logAt!,
      prefills: prefills!,
      prefillTokens: prefillTokens!,
      decodes: decodes!,
      elapsedMs: elapsedMs!,
    };
  });
}

export interface CpuReplay {
  readonly cached: readonly number[];
  readonly firstAt: readonly number[];
  readonly lastAt: readonly number[];
  readonly shapes: readonly BatchShape[];
  readonly preemptions: number;
  readonly blocksStored: number;
  readonly blocksRemoved: number;
}

/** The run's requests through an engine; times in microseconds since the run began. */
export function replayCpuRun(run: CpuRun, overrides: Partial<EngineConfig>): CpuReplay {
  const cached: number[] = [];
  const firstAt: number[] = [];
  const lastAt: number[] = [];
  const shapes: BatchShape[] = [];
  let blocksStored = 0;
  let blocksRemoved = 0;
  const engine = new Engine(
    { ...run.engine, ...overrides },
    {
      admitted: (_, { id }, cachedTokens) => (cached[Number(id)] = cachedTokens),
      token: (at, { id }, tokens) => {
        if (tokens === 1) firstAt[Number(id)] = at;
        lastAt[Number(id)] = at;
      },
      finished: () => undefined,
      step: (_start, _end, shape) => shapes.push({ ...shape }),
      blocksStored: (_at, _request, _first, count) => (blocksStored += count),
      blockRemoved: () => blocksRemoved++,
    },
  );
  const lanes = lanesOf(run);
  run.requests.forEach((request, number) => {
    engine.submit(Math.round(request.send * 1e6), {
      id: String(number),
      promptTokens: request.prompt_tokens,
      outputTokens: request.completion_tokens,
      lanes: lanes[number]!,
      priority: 0,
      deadlineAt: undefined,
      cacheRead: true,
    });
  });
  for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) engine.advanceTo(at);
  return { cached, firstAt, lastAt, shapes, preemptions: engine.gauges().preemptionsTold, blocksStored, blocksRemoved };
}

/**
 * Chains of the requests: blocks in a group's prefix are the group's, further prompt blocks those of the same text after
 * the same prefix, and output is its own.
 */
export function lanesOf({ requests, engine: { blockTokens } }: CpuRun): Int32Array[] {
  const numbers = new Map<string, number>();
  const numberOf = (text: string) => {
    const number = numbers.get(text) ?? numbers.size;
    numbers.set(text, number);
    return number;
  };
  return requests.map((request, position) => {
    const { group, prefix_len, unique_id, prompt_tokens, completion_tokens } = request;
    const blocks = Math.floor((prompt_tokens + completion_tokens) / blockTokens);
    const lanes = new Int32Array(2 * blocks);
    for (let i = 0; i < blocks; i++) {
      const end = (i + 1) * blockTokens;
      if (end <= prefix_len) lanes[2 * i] = numberOf(`group ${group}`);
      else if (end <= prompt_tokens) lanes[2 * i] = numberOf(`text ${group} ${prefix_len} ${unique_id}`);
      else lanes[2 * i] = -1 - position;
      lanes[2 * i + 1] = i;
    }
    return lanes;
  });
}

export function compareCpuRun(run: CpuRun, replay: CpuReplay): Comparison[] {
  const ms = (micros: number | undefined, send: number) => ((micros ?? 0) + TOKEN_DELAY_MICROS) / 1e3 - send * 1e3;
  const last = (request: RunRequest) => request.chunks.at(-1)?.[0] ?? 0;
  const gaps = (request: RunRequest) => Math.max(1, request.completion_tokens - 1);
  const { requests } = run;
  return [
    {
      name: "TTFT",
      real: requests.map((request) => (request.first_chunk - request.send) * 1e3),
      predicted: requests.map((request, i) => ms(replay.firstAt[i], request.send)),
    },
    {
      name: "TPOT",
      real: requests.map((request) => ((last(request) - request.first_chunk) * 1e3) / gaps(request)),
      predicted: requests.map(
        (request, i) => ((replay.lastAt[i] ?? 0) - (replay.firstAt[i] ?? 0)) / 1e3 / gaps(request),
      ),
    },
    {
      name: "E2E",
      real: requests.map((request) => (last(request) - request.send) * 1e3),
      predicted: requests.map((request, i) => ms(replay.lastAt[i], request.send)),
    },
  ];
}
