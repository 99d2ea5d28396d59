import type { ChainEnd } from "./chain-state.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";
import type { Asker } from "../../base/loop-turn.ts";
import type { Words } from "./word-source.ts";

/** What a request asks the engine to read, before it is tokens. */
export type PromptSource =
  /** Chat: the messages as the client sent them, with what else a chat template may read. */
  | {
      readonly kind: "chat";
      readonly messages: readonly ChatMessage[];
      /** Messages that it begins with, in the same array for every chat that is known to begin with them. */
      readonly beginning?: readonly ChatMessage[];
      readonly tools: readonly unknown[] | undefined;
      /** Fields of the body that change what a chat becomes, by their names there: chat_template_kwargs, documents ... */
      readonly template: Readonly<Record<string, unknown>>;
    }
  /** `specialTokens` false: without those that a tokenizer puts around a text. */
  | { readonly kind: "text"; readonly text: string; readonly specialTokens?: false }
  | { readonly kind: "tokens"; readonly tokens: readonly number[] };

export interface ChatMessage {
  readonly role: string;
  /** A string, or parts as OpenAI defines them, or null beside tool calls. */
  readonly content?: unknown;
  readonly [field: string]: unknown;
}

/** Separates caches that must not share: engines never share blocks across these. "" where not used. */
export interface CacheScope {
  /** Base model or adapter, as the client named it. */
  readonly model: string;
  readonly salt: string;
}

export interface TokenizedPrompt {
  readonly blocks: BlockChain;
  readonly promptTokens: number;
  /** The count and the blocks are the engine's own, token for token. */
  readonly exact: boolean;
  /** The configured tokenizer did not answer and the estimate stood in for it. */
  readonly fellBack: boolean;
  /** Where the chain ends, of blocks that are the engine's own: what it generates chains on from there. */
  readonly end?: ChainEnd;
}

export interface Tokenizer {
  readonly name: "estimate" | "character" | "tiktoken" | "huggingface" | "vllm";
  /**
   * Answers at once where it can, so that the common path has no await. Never throws on what a client sent. A promise
   * rejects with AskerLeft once nobody waits for it: its work ends then.
   */
  encode(prompt: PromptSource, scope: CacheScope, asker?: Asker): TokenizedPrompt | Promise<TokenizedPrompt>;
  /** The engine's own count for a prompt that was encoded here; lets an estimate correct its ratio. */
  learn(model: string, prompt: TokenizedPrompt, promptTokens: number): void;
  /**
   * The tokens that a model wrote, from their text alone; undefined, now or at once, where that is not certain. Left out
   * where it never is. An array that is answered at once is the caller's until the next call.
   */
  readonly answerWords?: ((text: string) => Words) | undefined;
  close(): void;
}
