import type { ChainEnd } from "../tokenizer/text/chain-state.ts";
import type { ContinuationPlan, UnfitRequest } from "./continuation-plan.ts";

/**
 * Why a stream cannot go on.
 * - sampled: its route has no form for ids, and another draw would not repeat it
 * - no-ids: its engine does not send token ids, and its text does not do in their place
 * - long, room: it has more tokens than are kept of one stream, or of all
 * - reasoning: it broke inside what a parser of the engine makes of the model's text
 * - seam: it broke between tokens that went out together, of an answer that another draw would not repeat
 */
export type UnfitStream = UnfitRequest | "sampled" | "no-ids" | "long" | "room" | "reasoning" | "seam";

export interface KeptStreamOptions {
  readonly plan: ContinuationPlan;
  /**
   * It may go on behind its text where its engine sends no ids; its prompt's tokens, 0 where they are not known for
   * sure.
   */
  readonly byText: { readonly promptTokens: number } | undefined;
  /** Where the chain of the prompt's blocks ends, where it is known. */
  readonly end: ChainEnd | undefined;
  /** Prompt and answer together. */
  readonly tokensMax: number;
  /** Asked before so many bytes more are kept, or fewer where negative; false where there is no room for them. */
  readonly hold: (bytes: number) => boolean;
}

/** What names a stream for its client, as the first event has it. */
export interface StreamName {
  readonly id: unknown;
  readonly object: unknown;
  readonly created: unknown;
  readonly model: unknown;
}
