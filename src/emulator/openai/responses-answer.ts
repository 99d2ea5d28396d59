import { isComplete, textBetween, type SequencesAnswer, type EmulatedSequence } from "../generation/sequence.ts";
import type { ApiError } from "../http/api-error.ts";
import { isOpen, type ServedRequest } from "../http/exchange.ts";
import { sendJson } from "../http/reply.ts";
import type { AnswerContext } from "./answer-context.ts";
import { TokenStream } from "./token-stream.ts";
import { totalUsage } from "./usage.ts";

/** What the answer of /v1/responses repeats of its request. */
export interface ResponsesContext extends AnswerContext {
  readonly messageId: string;
  readonly instructions: string | null;
  readonly maxOutputTokens: number;
}

/** An answer in the shape of OpenAI's responses. */
export class ResponsesBody implements SequencesAnswer {
  readonly sequences: readonly EmulatedSequence[];
  readonly everyToken = false;
  readonly #exchange: ServedRequest;
  readonly #context: ResponsesContext;

  constructor(exchange: ServedRequest, context: ResponsesContext, sequences: readonly EmulatedSequence[]) {
    this.sequences = sequences;
    this.#exchange = exchange;
    this.#context = context;
  }

  advance(): void {
    const [sequence] = this.sequences;
    if (sequence === undefined || !isComplete(this) || !isOpen(this.#exchange)) return;
    sendJson(this.#exchange, 200, JSON.stringify(responseObject(this.#context, sequence, true)));
  }

  fail(error: ApiError): void {
    if (isOpen(this.#exchange)) sendJson(this.#exchange, error.code, error.json);
  }
}

/** The same as an event stream: every event has a name, a number and no [DONE] behind it. */
export class ResponsesStream extends TokenStream {
  readonly #context: ResponsesContext;
  readonly #place: { readonly item_id: string; readonly output_index: number };
  #sent = 0;

  constructor(exchange: ServedRequest, context: ResponsesContext, sequences: readonly EmulatedSequence[]) {
    super(exchange, sequences);
    this.#context = context;
    this.#place = { item_id: context.messageId, output_index: 0 };
  }

  protected open(): void {
    const [sequence] = this.sequences;
    if (sequence === undefined) return;
    const response = responseObject(this.#context, sequence, false);
    this.#event("created", {}, { response });
    this.#event("in_progress", {}, { response });
    this.#event("output_item.added", {}, { item: message(this.#context, "in_progress", []), output_index: 0 });
    this.#event("content_part.added", { content_index: 0 }, { ...this.#place, part: part("", []) });
  }

  protected tokens(sequence: EmulatedSequence, from: number, to: number): void {
    const delta = textBetween(sequence.plan, from, to);
    if (delta === "") return;
    const { item_id, output_index } = this.#place;
    this.#event("output_text.delta", { content_index: 0, delta }, { item_id, logprobs: [], output_index });
  }

  protected close(): void {
    const [sequence] = this.sequences;
    if (sequence === undefined) return;
    const text = textBetween(sequence.plan, 0, sequence.produced);
    const { item_id, output_index } = this.#place;
    const done = part(text, null);
    this.#event("output_text.done", { content_index: 0 }, { item_id, logprobs: [], output_index }, { text });
    this.#event("content_part.done", { content_index: 0 }, { ...this.#place, part: done });
    this.#event("output_item.done", {}, { item: message(this.#context, "completed", [done]), output_index: 0 });
    this.#event("completed", {}, { response: responseObject(this.#context, sequence, true) });
  }

  /** Fields are in alphabetical order on the wire: the number and the type come among them. */
  #event(name: string, first: object, then: object, last: object = {}): void {
    const type = `response.${name}`;
    const data = JSON.stringify({ ...first, ...then, sequence_number: this.#sent++, ...last, type });
    this.stream.event(`event: ${type}\ndata: ${data}\n\n`);
  }
}

/** The response as it is before its first token, or as it is in the end. */
function responseObject(context: ResponsesContext, sequence: EmulatedSequence, ended: boolean): unknown {
  const cut = sequence.finish === "length";
  const text = textBetween(sequence.plan, 0, sequence.produced);
  return {
    id: context.id,
    created_at: context.created,
    incomplete_details: ended && cut ? { reason: "max_output_tokens" } : null,
    instructions: context.instructions,
    metadata: null,
    model: context.model,
    object: "response",
    output: ended ? [message(context, "completed", [part(text, null)])] : [],
    parallel_tool_calls: true,
    temperature: context.sampling.temperature,
    tool_choice: "none",
    tools: [],
    top_p: context.sampling.topP,
    background: false,
    max_output_tokens: context.maxOutputTokens,
    max_tool_calls: null,
    previous_response_id: null,
    prompt: null,
    reasoning: null,
    service_tier: "auto",
    status: ended ? (cut ? "incomplete" : "completed") : "in_progress",
    text: null,
    top_logprobs: null,
    truncation: "disabled",
    usage: ended ? responseUsage(context, sequence) : null,
    user: null,
    presence_penalty: 0,
    frequency_penalty: 0,
    kv_transfer_params: null,
    ec_transfer_params: null,
    input_messages: null,
    output_messages: null,
  };
}

function message({ messageId: id }: ResponsesContext, status: string, content: readonly unknown[]): unknown {
  return { id, content, role: "assistant", status, type: "message", phase: null };
}

function part(text: string, logprobs: readonly unknown[] | null): unknown {
  return { annotations: [], text, type: "output_text", logprobs };
}

function responseUsage(context: ResponsesContext, sequence: EmulatedSequence): unknown {
  const { promptTokens, completionTokens, cachedTokens } = totalUsage([sequence], context.blockTokens);
  const input = {
    cached_tokens: cachedTokens,
    cache_write_tokens: 0,
    input_tokens_per_turn: [],
    cached_tokens_per_turn: [],
  };
  const output = {
    reasoning_tokens: 0,
    tool_output_tokens: 0,
    output_tokens_per_turn: [],
    tool_output_tokens_per_turn: [],
  };
  return {
    input_tokens: promptTokens,
    input_tokens_details: input,
    output_tokens: completionTokens,
    output_tokens_details: output,
    total_tokens: promptTokens + completionTokens,
  };
}
