import type { EngineTokenizer } from "../tokenizer/tokenizer.ts";
import type { Sampling } from "../generation/sampling.ts";

/** What every shape of an answer needs to know of its request and its server. */
export interface AnswerContext {
  /** Public id, with its prefix. */
  readonly id: string;
  /** Model as the answer names it. */
  readonly model: string;
  /** Unix seconds. */
  readonly created: number;
  readonly fingerprint: string;
  readonly tokenizer: EngineTokenizer;
  readonly sampling: Sampling;
  /** Whether a stream ends with a usage event. */
  readonly includeUsage: boolean;
  /** Whether every event of a stream carries usage. */
  readonly continuousUsage: boolean;
  readonly promptTokensDetails: boolean;
  /** Tokens of a KV block. */
  readonly blockTokens: number;
}
