import { isComplete, textBetween, type Answer, type Sequence } from "../generation/sequence.ts";
import type { ApiError } from "../http/api-error.ts";
import { isOpen, type Exchange } from "../http/exchange.ts";
import { sendJson } from "../http/reply.ts";
import type { AnswerContext } from "./answer-context.ts";
import { totalUsage } from "./usage.ts";

/** What the answer of /v1/responses repeats of its request. */
export interface ResponsesContext extends AnswerContext {
  readonly messageId: string;
  readonly instructions: string | null;
  readonly maxOutputTokens: number;
}

/** An answer in the shape of OpenAI's responses. */
export class ResponsesBody implements Answer {
  readonly sequences: readonly Sequence[];
  readonly everyToken = false;
  readonly #exchange: Exchange;
  readonly #context: ResponsesContext;

  constructor(exchange: Exchange, context: ResponsesContext, sequences: readonly Sequence[]) {
    this.sequences = sequences;
    this.#exchange = exchange;
    this.#context = context;
  }

  advance(): void {
    const [sequence] = this.sequences;
    if (sequence === undefined || !isComplete(this) || !isOpen(this.#exchange)) return;
    sendJson(this.#exchange, 200, responseJson(this.#context, sequence));
  }

  fail(error: ApiError): void {
    if (isOpen(this.#exchange)) sendJson(this.#exchange, error.code, error.json);
  }
}

function responseJson(context: ResponsesContext, sequence: Sequence): string {
  const cut = sequence.finish === "length";
  const text = textBetween(sequence.plan, 0, sequence.produced);
  const content = [{ annotations: [], text, type: "output_text", logprobs: null }];
  const message = {
    id: context.messageId,
    content,
    role: "assistant",
    status: "completed",
    type: "message",
    phase: null,
  };
  const body = {
    id: context.id,
    created_at: context.created,
    incomplete_details: cut ? { reason: "max_output_tokens" } : null,
    instructions: context.instructions,
    metadata: null,
    model: context.model,
    object: "response",
    output: [message],
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
    status: cut ? "incomplete" : "completed",
    text: null,
    top_logprobs: null,
    truncation: "disabled",
    usage: responseUsage(context, sequence),
    user: null,
    presence_penalty: 0,
    frequency_penalty: 0,
    kv_transfer_params: null,
    ec_transfer_params: null,
    input_messages: null,
    output_messages: null,
  };
  return JSON.stringify(body);
}

function responseUsage(context: ResponsesContext, sequence: Sequence): unknown {
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
