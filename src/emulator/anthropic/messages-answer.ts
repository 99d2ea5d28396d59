import { isComplete, textBetween, type SequencesAnswer, type EmulatedSequence } from "../generation/sequence.ts";
import type { ApiError } from "../http/api-error.ts";
import { isOpen, type ServedRequest } from "../http/exchange.ts";
import { sendJson, type HeaderList } from "../http/reply.ts";
import type { AnswerContext } from "../openai/answer-context.ts";
import { TokenStream } from "../openai/token-stream.ts";
import { totalUsage } from "../openai/usage.ts";

/** An answer in the shape of Anthropic's messages, as one body. */
export class MessagesBody implements SequencesAnswer {
  readonly sequences: readonly EmulatedSequence[];
  readonly everyToken = false;
  readonly #exchange: ServedRequest;
  readonly #context: AnswerContext;
  readonly #leading: () => HeaderList;

  constructor(
    exchange: ServedRequest,
    context: AnswerContext,
    sequences: readonly EmulatedSequence[],
    leading: () => HeaderList,
  ) {
    this.sequences = sequences;
    this.#exchange = exchange;
    this.#context = context;
    this.#leading = leading;
  }

  advance(): void {
    const [sequence] = this.sequences;
    if (sequence === undefined || !isComplete(this) || !isOpen(this.#exchange)) return;
    const body = {
      id: this.#context.id,
      type: "message",
      role: "assistant",
      content: [{ type: "text", text: textBetween(sequence.plan, 0, sequence.produced) }],
      model: this.#context.model,
      // What is null is left out of a whole answer.
      ...withoutNull(stopOf(sequence)),
      usage: finalUsage(this.#context, this.sequences),
    };
    sendJson(this.#exchange, 200, JSON.stringify(body), this.#leading());
  }

  fail(error: ApiError): void {
    if (isOpen(this.#exchange)) sendJson(this.#exchange, error.code, messagesError(error));
  }
}

/** The same as an event stream, whose events have names and whose end has no [DONE]. */
export class MessagesStream extends TokenStream {
  readonly #context: AnswerContext;
  #isBlockOpen = false;

  constructor(exchange: ServedRequest, context: AnswerContext, sequences: readonly EmulatedSequence[]) {
    super(exchange, sequences);
    this.#context = context;
  }

  protected open(): void {
    const usage = { input_tokens: this.sequences[0]?.prompt.length ?? 0, output_tokens: 0 };
    const head = { id: this.#context.id, type: "message", role: "assistant", content: [], model: this.#context.model };
    this.#event("message_start", { message: { ...head, stop_reason: null, stop_sequence: null, usage } });
  }

  protected tokens(sequence: EmulatedSequence, from: number, to: number): void {
    const text = textBetween(sequence.plan, from, to);
    if (text === "") return;
    if (!this.#isBlockOpen) this.#event("content_block_start", { content_block: { type: "text", text: "" }, index: 0 });
    this.#isBlockOpen = true;
    this.#event("content_block_delta", { delta: { type: "text_delta", text }, index: 0 });
  }

  protected close(): void {
    const [sequence] = this.sequences;
    if (sequence === undefined) return;
    if (this.#isBlockOpen) this.#event("content_block_stop", { index: 0 });
    this.#event("message_delta", {
      delta: stopOf(sequence),
      usage: finalUsage(this.#context, this.sequences),
    });
    this.#event("message_stop", {});
  }

  protected override failure(error: ApiError): void {
    this.stream.event(`event: error\ndata: ${messagesError(error)}\n\n`);
  }

  #event(type: string, fields: object): void {
    this.stream.event(`event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`);
  }
}

/** An error in Anthropic's shape. */
export function messagesError(error: ApiError): string {
  return JSON.stringify({ type: "error", error: { type: error.type, message: error.message } });
}

interface MessageStop {
  readonly stop_reason: string | null;
  readonly stop_sequence: string | null;
}

/** Why an answer ended. vLLM has no word for one that it aborted: null. */
function stopOf({ finish, plan: { stopReason } }: EmulatedSequence): MessageStop {
  if (finish === "length") return { stop_reason: "max_tokens", stop_sequence: null };
  if (finish !== "stop") return { stop_reason: null, stop_sequence: null };
  if (typeof stopReason === "string") return { stop_reason: "stop_sequence", stop_sequence: stopReason };
  return { stop_reason: "end_turn", stop_sequence: null };
}

function withoutNull(stop: MessageStop): object {
  return Object.fromEntries(Object.entries(stop).filter(([, value]) => value !== null));
}

/** `input_tokens` are the prompt's that were neither read from the cache nor put into it; without details, all. */
function finalUsage(context: AnswerContext, sequences: readonly EmulatedSequence[]): unknown {
  const { blockTokens, promptTokensDetails } = context;
  const { promptTokens, completionTokens, cachedTokens, createdCacheTokens } = totalUsage(sequences, blockTokens);
  if (!promptTokensDetails) return { input_tokens: promptTokens, output_tokens: completionTokens };
  return {
    input_tokens: promptTokens - cachedTokens - createdCacheTokens,
    output_tokens: completionTokens,
    cache_creation_input_tokens: createdCacheTokens,
    cache_read_input_tokens: cachedTokens,
  };
}
