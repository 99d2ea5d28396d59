import type { StepDrift } from "./step-drift.ts";
import type { StepTimeSpec } from "./step-time/create-step-time.ts";

/** One engine: sizes as vLLM names them in comments, times in microseconds. */
export interface EngineConfig {
  /** Tokens per KV block (block_size). */
  readonly blockTokens: number;
  /** KV blocks as vLLM reports them (num_gpu_blocks); one of them is reserved and never used. */
  readonly kvBlocks: number;
  /** Keys and values of one token, on all its GPUs together; what a transfer between engines moves. */
  readonly kvBytesPerToken: number;
  /** Requests in a batch at most (max_num_seqs). */
  readonly sequencesMax: number;
  /** Tokens in a step at most (max_num_batched_tokens). */
  readonly batchTokensMax: number;
  /** Tokens of one request in a step at most, while others run or wait (long_prefill_token_threshold); 0 for no limit. */
  readonly longPrefillTokens: number;
  /** A prompt beyond what is left of a step's tokens is begun all the same (enable_chunked_prefill), else it waits. */
  readonly chunkedPrefill: boolean;
  /** Prompt and output of a request at most (max_model_len). */
  readonly modelTokensMax: number;
  /** Reuse of KV blocks with equal content (enable_prefix_caching). */
  readonly prefixCaching: boolean;
  /** Part of the usable blocks that must stay free when a request is admitted beside others (watermark), in [0, 1). */
  readonly watermark: number;
  /** Admit only what fits as a whole, though computed in chunks (scheduler_reserve_full_isl). */
  readonly reserveFullPrompt: boolean;
  readonly scheduler: SchedulerPolicy;
  readonly preemption: PreemptionPolicy;
  /** From submission until the scheduler can see the request. */
  readonly queueDelay: QueueDelay;
  readonly stepTime: StepTimeSpec;
  /** Makes steps longer or shorter by when they start; undefined for as the step time has them. */
  readonly stepDrift?: StepDrift | undefined;
  readonly stepGap: StepGap;
  /** Ranks (data_parallel_size), each with all that is stated here; at least 1. */
  readonly dataParallel: number;
  /** Which rank a request goes to; of no effect with one. */
  readonly rankBalance: RankBalance;
  /** A step is composed when its predecessor starts, not when it ends (async_scheduling). */
  readonly asyncScheduling: boolean;
  readonly semantics: EngineSemantics;
  /** A second, slower tier of KV blocks; undefined for none. */
  readonly tier: KvTierConfig | undefined;
  /** Advance many decode steps as one where nothing can change between them. The results are the same. */
  readonly coalesce: boolean;
  /** Verify the invariants after every step. */
  readonly check: boolean;
}

export const SCHEDULER_POLICIES = ["fcfs", "priority-fcfs", "sjf", "reverse-priority"] as const;
/**
 * `fcfs`: arrival. `priority-fcfs`: priority, then arrival, then id. `sjf`: prompt length, then arrival, then id.
 * `reverse-priority`: the least urgent first, then arrival, then id; the worst that a scheduler can do.
 */
export type SchedulerPolicy = (typeof SCHEDULER_POLICIES)[number];

export const PREEMPTION_POLICIES = ["tail", "lowest-priority"] as const;
/** Who yields when blocks run out. `tail`: the last admitted. `lowest-priority`: then the latest arrival among equals. */
export type PreemptionPolicy = (typeof PREEMPTION_POLICIES)[number];

export const RANK_BALANCES = ["in-flight", "weighted-queue"] as const;
/** How vLLM's API server spreads requests over data-parallel ranks: RankBalancer has the formulas. */
export type RankBalance = (typeof RANK_BALANCES)[number];

/** base + perPromptToken * prompt tokens (alpha0, alpha1), truncated to whole microseconds. */
export interface QueueDelay {
  readonly baseMicros: number;
  readonly perPromptTokenMicros: number;
}

/** How long a request with such a prompt is on its way to the scheduler. */
export function queueMicros({ baseMicros, perPromptTokenMicros }: QueueDelay, promptTokens: number): number {
  return Math.trunc(baseMicros + perPromptTokenMicros * promptTokens);
}

/** Idle time between a step's end and the next one's start: base, more after a prefill, more per decode. */
export interface StepGap {
  readonly baseMicros: number;
  readonly afterPrefillMicros: number;
  readonly perDecodeMicros: number;
}

/** Where simulators differ from vLLM; the first value of each is vLLM's. */
export interface EngineSemantics {
  /** When a finished request gives back its blocks and its place in the batch. */
  readonly completion: "step-end" | "last-step-start";
  /** What a preempted request has left. */
  readonly preempted: "keeps-tokens" | "restarts";
  /** What is computed for a prompt that is cached whole. */
  readonly fullHit: "last-token" | "nothing";
  /** Where the first chunk after a prefix hit is taken to begin, in its step time. */
  readonly hitChunkStart: "true-position" | "zero";
  /** Whether the last generated token takes a place in the KV cache. */
  readonly finalToken: "not-stored" | "stored";
  /** Where a block without full content enters the free list: the first to be overwritten, or in its turn. */
  readonly partialBlocks: "front" | "back";
  /** Whether longPrefillTokens spares a request that is alone in the engine. */
  readonly lonePrefill: "whole" | "limited";
  /**
   * Who yields of equally urgent requests that came at the same time: who was admitted first (for the first time, so
   * that the same one yields until the other is done), or who is last in the batch.
   */
  readonly victimTies: "first" | "last";
  /** What of a request must find room in all the KV blocks, or it is refused; an answer beyond them is cut there. */
  readonly mustFit: "prompt-and-output" | "prompt";
  /** Two blocks with equal content: both can be found, or only the one written last, until either is overwritten. */
  readonly duplicates: "coexist" | "last-writer";
}

/** Blocks in the host's memory: copied there when they are released, copied back on a hit. */
export interface KvTierConfig {
  /** Blocks that the host holds. */
  readonly cpuBlocks: number;
  /** Used part of the GPU's blocks from which released blocks are copied out, in [0, 1]; 0 copies all. */
  readonly offloadThreshold: number;
  readonly transferBaseMicros: number;
  readonly blockBytes: number;
  readonly bytesPerSecond: number;
  /** A block copied back within this time of being copied out counts as thrashing. */
  readonly thrashWindowMicros: number;
}

export const VLLM_SEMANTICS: EngineSemantics = {
  completion: "step-end",
  preempted: "keeps-tokens",
  fullHit: "last-token",
  hitChunkStart: "true-position",
  finalToken: "not-stored",
  partialBlocks: "front",
  lonePrefill: "whole",
  victimTies: "first",
  mustFit: "prompt-and-output",
  duplicates: "coexist",
};

/** A vLLM server's defaults on a GPU with less than 70 GiB; the step time is a placeholder of an 8B model's order. */
const ENGINE_DEFAULTS: EngineConfig = {
  blockTokens: 16,
  kvBlocks: 8192,
  // 2 (keys, values) * 32 layers * 8 heads * 128 * 2 bytes, as Llama 3.1 8B has them.
  kvBytesPerToken: 131_072,
  sequencesMax: 256,
  batchTokensMax: 2048,
  longPrefillTokens: 0,
  chunkedPrefill: true,
  modelTokensMax: 8192,
  prefixCaching: true,
  watermark: 0,
  reserveFullPrompt: true,
  scheduler: "fcfs",
  preemption: "tail",
  queueDelay: { baseMicros: 0, perPromptTokenMicros: 0 },
  stepTime: { kind: "coefficients", baseMicros: 6000, perPrefillTokenMicros: 20, perDecodeMicros: 50 },
  stepGap: { baseMicros: 0, afterPrefillMicros: 0, perDecodeMicros: 0 },
  dataParallel: 1,
  rankBalance: "in-flight",
  asyncScheduling: false,
  semantics: VLLM_SEMANTICS,
  tier: undefined,
  coalesce: true,
  check: false,
};

/** Tokens that fit into the cache together: one block is reserved. */
export function roomTokens({ kvBlocks, blockTokens }: Pick<EngineConfig, "kvBlocks" | "blockTokens">): number {
  return (kvBlocks - 1) * blockTokens;
}

/** ENGINE_DEFAULTS with some values in their place. Nothing is checked here. */
export function engineDefaults(overrides: Partial<EngineConfig> = {}): EngineConfig {
  return { ...ENGINE_DEFAULTS, ...overrides };
}
