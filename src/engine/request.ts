import type { Micros } from "#core/base/units.ts";
import type { BlockFetch } from "./block-fetch.ts";

/** One generation as the engine sees it. The output length is ground truth: nothing that decides may read it. */
export interface EngineRequest {
  /** Unique among the requests in this engine. */
  readonly id: string;
  /** Prompt length, at least 1. */
  readonly promptTokens: number;
  /**
   * Tokens that will be generated; cut where they exceed the model's length with the prompt. With 0 the request is over
   * with its prompt: its token is reported like any other and never takes a place in the KV cache.
   */
  readonly outputTokens: number;
  /**
   * Two 32-bit words per full block of the prompt followed by the output, chained, at the engine's block size. A block
   * beyond the end of the array has no identity: it occupies memory and ages, and nothing ever hits it.
   */
  readonly hashes: Int32Array;
  /** Lower runs earlier. */
  readonly priority: number;
  /** When the client gives up; undefined for never. */
  readonly deadlineAt: Micros | undefined;
  /** False where the engine must compute the whole prompt, for example for prompt log-probabilities. */
  readonly cacheRead: boolean;
  /** Another engine computed the prompt, and its blocks are fetched from there. Absent: this engine computes it. */
  readonly fetch?: BlockFetch | undefined;
  /** Another engine will fetch the prompt's blocks: they are held beyond its end, unless that is an abort. */
  readonly holds?: boolean;
}

/**
 * Why a request left: `stop` when all its output was made, `length` when the model's length or all KV blocks cut it,
 * `abort` when the host took it back, `deadline` when its client gave up.
 */
export type FinishReason = "stop" | "length" | "abort" | "deadline";

/**
 * What became of a submission. `too-long`: the prompt leaves no room for a token in the model's length. `never-fits`:
 * prompt and output need more KV blocks than there are, or, where prompts are not computed in chunks,
 * more tokens in a step. `expired`: its deadline had passed. `duplicate`: its id is
 * in the engine already. Only `queued` changes the engine.
 */
export type SubmitOutcome = "queued" | "too-long" | "never-fits" | "expired" | "duplicate";
