import type { Micros } from "#core/base/units.ts";
import type { Hold } from "./block-fetch.ts";
import type { FinishReason, EngineRequest } from "./request.ts";
import type { BatchShape } from "./step-time/batch-shape.ts";

/**
 * What an engine reports to its host, during advanceTo and abort, in the order of time. (Where requests complete at the
 * start of their last step, one whose client goes during a step is notified of that step's token before its end.)
 */
export interface EngineSink {
  /** First admission into a batch, with the prompt tokens found in the cache. Again on each where preemption restarts. */
  admitted?(at: Micros, request: EngineRequest, cachedTokens: number): void;
  /** Tokens generated so far. With `coalesce` only the first and the last token of a request are reported. */
  token(at: Micros, request: EngineRequest, outputTokens: number): void;
  preempted?(at: Micros, request: EngineRequest): void;
  /** Its blocks are free and its place in the batch is given back: before `finished`, at the same time in vLLM. */
  released?(at: Micros, request: EngineRequest): void;
  /** Once for every queued request that does not stay for ever. */
  finished(at: Micros, request: EngineRequest, reason: FinishReason, cachedTokens: number): void;
  /** It ended, and its prompt's blocks are held; before `released`. Only where the request asks for it. */
  held?(at: Micros, request: EngineRequest, hold: Hold): void;
  /** A step starts. The shape belongs to the engine and changes after the call. */
  step?(startAt: Micros, endAt: Micros, shape: Readonly<BatchShape>): void;
  /** Full blocks [firstBlock, firstBlock + count) of the request can be hit from now on. Those with an identity only. */
  blocksStored?(at: Micros, request: EngineRequest, firstBlock: number, count: number): void;
  /** A cached block was overwritten; `low` and `high` are its two hash words. */
  blockRemoved?(at: Micros, low: number, high: number): void;
  /** A block was copied to the second tier, or overwritten there. */
  tierBlockStored?(at: Micros, low: number, high: number): void;
  tierBlockRemoved?(at: Micros, low: number, high: number): void;
}

/** The gauges and counters that vLLM exports; counters since the engine was made. */
export interface EngineGauges {
  readonly running: number;
  readonly waiting: number;
  /** Used blocks over usable blocks, in [0, 1]. */
  readonly kvUtilization: number;
  readonly kvBlocksUsed: number;
  readonly kvBlocksFree: number;
  /** Prompt tokens looked up in the prefix cache and found there, counted once per request at its first admission. */
  readonly prefixQueriesTokens: number;
  readonly prefixHitsTokens: number;
  /** Of those not found there: tokens copied back from the second tier. */
  readonly tierHitsTokens: number;
  /** Prompt tokens of requests that got their first token. */
  readonly promptTokens: number;
  readonly generationTokens: number;
  readonly preemptions: number;
  /** Those of requests that have had a token since, which is when vLLM's num_preemptions_total counts them. */
  readonly preemptionsReported: number;
  readonly steps: number;
  readonly finished: number;
  /** KV blocks taken from the cache and taken empty, re-admissions included. */
  readonly blockHits: number;
  readonly blockMisses: number;
  /** Blocks in the second tier; blocks copied to it and back; of those back, the ones that had hardly left. */
  readonly tierBlocks: number;
  readonly tierBlocksCopiedOut: number;
  readonly tierBlocksCopiedBack: number;
  readonly tierBlocksThrashed: number;
}
