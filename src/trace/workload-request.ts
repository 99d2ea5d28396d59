import type { Slo } from "#core/request/slo.ts";
import type { Micros } from "#core/base/units.ts";

/**
 * One request of a recorded or generated workload: what a client sends, with the ground truth about the answer's
 * length. Readers of every format yield these in sending order: a session's turns in order, a session's own turns after
 * the turn that spawned it, and sessions by arrival.
 */
export interface WorkloadRequest {
  /** Place in the workload, from 0. */
  readonly index: number;
  /** From the start of the workload. It holds for first turns only: a follow-up turn has `thinkMicros`. */
  readonly arrivalMicros: Micros;
  /** Conversation, unique in the workload; "" where the trace names none. */
  readonly session: string;
  /** Place in the conversation, from 0. */
  readonly turn: number;
  /** Turn of another conversation that spawned this one; its completion starts the first turn's think time. */
  readonly parent: ParentTurn | undefined;
  /** Conversations that must have ended, beside the previous turn, before the think time starts (joined sub-agents). */
  readonly joins: readonly string[];
  /** Between the completion of what came before and this request: closed loop. Undefined for an open-loop arrival. */
  readonly thinkMicros: Micros | undefined;
  readonly promptTokens: number;
  /** Tokens that the answer had, at least 1; of several all together. */
  readonly outputTokens: number;
  /** Answers that were made side by side, where there were several. */
  readonly sequences?: number | undefined;
  /**
   * Tokens of each of its prompts, `promptTokens` together, where it had several and that is known: each got as many of the
   * answers, and `blockIds` are the first one's.
   */
  readonly tokensByPrompt?: readonly number[] | undefined;
  /**
   * Content identity of consecutive blocks of `blockTokens` tokens from the start of the prompt: equal ids are equal
   * content, what came before included. The last one may cover a partial block. Tokens beyond the last block are this
   * request's own. Safe integers in [0, 2^53). Undefined where the trace holds lengths alone.
   */
  readonly blockIds: Float64Array | undefined;
  readonly blockTokens: number;
  /**
   * The same of the blocks behind those that the answer filled, where the router was given them: the ids go on where the
   * prompt's full blocks end.
   */
  readonly answerIds?: Float64Array | undefined;
  /** False where its engine computed the whole prompt whatever its cache held. */
  readonly cacheRead?: boolean | undefined;
  /** The prompt itself where the trace has it; never logged. */
  readonly text: string | undefined;
  /** The prompt's exact tokens where the trace has them. */
  readonly tokenIds: Int32Array | undefined;
  /** "" where the trace names none. */
  readonly tenant: string;
  readonly sloClass: string;
  readonly model: string;
  /** From its arrival until its client gives up, where the workload states it. */
  readonly timeoutMicros?: Micros | undefined;
  /** What its client wants its times to be at most, where the workload states it. */
  readonly slo?: Slo | undefined;
}

export interface ParentTurn {
  readonly session: string;
  readonly turn: number;
}

/** What a request has when a trace holds nothing but its arrival and lengths. */
export const LENGTHS_ONLY = {
  session: "",
  turn: 0,
  parent: undefined,
  joins: [],
  thinkMicros: undefined,
  blockIds: undefined,
  blockTokens: 16,
  text: undefined,
  tokenIds: undefined,
  tenant: "",
  sloClass: "",
  model: "",
} as const satisfies Partial<WorkloadRequest>;

/** Of a request's first prompt, where it has several. */
export function firstPromptTokens({
  promptTokens,
  tokensByPrompt,
}: Pick<WorkloadRequest, "promptTokens" | "tokensByPrompt">): number {
  return tokensByPrompt?.[0] ?? promptTokens;
}
