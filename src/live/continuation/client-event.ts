import type { ContinuationPlan } from "./continuation-plan.ts";
import type { StreamName } from "./kept-stream.ts";

/** Tokens as the client is to count them: the prompt of the first endpoint, and the output of all. */
export interface TokenCounts {
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Of the prompt, at the endpoint that wrote the end; undefined where it does not state them. */
  readonly cachedTokens?: number | undefined;
}

/** A piece of output of an endpoint at which a stream went on. */
export interface ContinuedPiece {
  readonly text: string;
  readonly ids: readonly number[];
  /** Null but in the last piece. */
  readonly finishReason: string | null;
  readonly stopReason: unknown;
}

/** Writes the events of a stream that went on as its first endpoint would have written them. */
export class ClientEvents {
  readonly #plan: ContinuationPlan;
  readonly #head: string;

  constructor(plan: ContinuationPlan, { id, object, created, model }: StreamName) {
    this.#plan = plan;
    this.#head = JSON.stringify({ id, object, created, model }).slice(0, -1);
  }

  piece({ text, ids, finishReason, stopReason }: ContinuedPiece, counts: TokenCounts): string {
    const { dialect, showsIds, showsRunningUsage } = this.#plan;
    const last = finishReason !== null;
    const token_ids = showsIds ? ids : null;
    const end = {
      finish_reason: finishReason,
      ...((last || dialect === "completions") && { stop_reason: stopReason }),
    };
    const choice =
      dialect === "chat"
        ? { index: 0, delta: { content: text }, logprobs: null, ...end, token_ids }
        : { index: 0, text, logprobs: null, ...end, prompt_token_ids: null, token_ids };
    return this.#event({ choices: [choice], ...(showsRunningUsage && { usage: usageOf(counts) }) });
  }

  /** The last event with the counts, where the client asked for it; "" where it did not. */
  usage(counts: TokenCounts, fingerprint: unknown): string {
    if (!this.#plan.showsUsage) return "";
    const mark = typeof fingerprint === "string" ? { system_fingerprint: fingerprint } : {};
    return this.#event({ choices: [], usage: usageOf(counts), ...mark });
  }

  #event(rest: object): string {
    return `data: ${this.#head},${JSON.stringify(rest).slice(1)}\n\n`;
  }
}

export const DONE_EVENT = "data: [DONE]\n\n";

function usageOf({ promptTokens, outputTokens, cachedTokens }: TokenCounts) {
  return {
    prompt_tokens: promptTokens,
    total_tokens: promptTokens + outputTokens,
    completion_tokens: outputTokens,
    ...(cachedTokens !== undefined && {
      prompt_tokens_details: { cached_tokens: Math.min(cachedTokens, promptTokens) },
    }),
  };
}
