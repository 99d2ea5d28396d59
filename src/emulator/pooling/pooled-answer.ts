import { isComplete, type SequencesAnswer, type EmulatedSequence } from "../generation/sequence.ts";
import type { ApiError } from "../http/api-error.ts";
import { isOpen, type ServedRequest } from "../http/exchange.ts";
import { sendJson } from "../http/reply.ts";

/** An answer of a pooling model: sent once all its prompts are computed. */
export class PooledAnswer implements SequencesAnswer {
  readonly sequences: readonly EmulatedSequence[];
  readonly everyToken = false;
  readonly #exchange: ServedRequest;
  readonly #body: (promptTokens: number) => unknown;

  constructor(
    exchange: ServedRequest,
    sequences: readonly EmulatedSequence[],
    body: (promptTokens: number) => unknown,
  ) {
    this.#exchange = exchange;
    this.sequences = sequences;
    this.#body = body;
  }

  advance(): void {
    if (!isComplete(this) || !isOpen(this.#exchange)) return;
    const promptTokens = this.sequences.reduce((sum, { prompt }) => sum + prompt.length, 0);
    sendJson(this.#exchange, 200, JSON.stringify(this.#body(promptTokens)));
  }

  fail(error: ApiError): void {
    if (isOpen(this.#exchange)) sendJson(this.#exchange, error.code, error.json);
  }
}

/** vLLM's usage of a pooling model's answer. */
export function pooledUsage(promptTokens: number): unknown {
  return {
    prompt_tokens: promptTokens,
    total_tokens: promptTokens,
    completion_tokens: 0,
    prompt_tokens_details: null,
    completion_tokens_details: null,
  };
}
