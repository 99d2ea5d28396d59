import { isComplete, textBetween, type SequencesAnswer, type EmulatedSequence } from "../generation/sequence.ts";
import type { ApiError } from "../http/api-error.ts";
import { isOpen, type ServedRequest } from "../http/exchange.ts";
import { sendJson, type HeaderList } from "../http/reply.ts";
import type { AnswerContext } from "./answer-context.ts";
import type { ChatRequest } from "./chat-request.ts";
import { chatLogprobs, promptLogprobs } from "./logprobs.ts";
import type { ToolCallText } from "./tool-call.ts";
import { totalUsage, usageJson } from "./usage.ts";

/** What a chat answer needs beyond the common context. */
export interface ChatAnswerContext extends AnswerContext {
  readonly request: ChatRequest;
  /** The call that the answer is; undefined for text. */
  readonly toolCall: ToolCallText | undefined;
  /** Id of the tool call of each choice. */
  readonly toolCallIds: readonly string[];
  /** False for a batch, whose usage vLLM leaves without details. */
  readonly detailedUsage: boolean;
}

/** A chat answer as one JSON body, sent when every choice has finished. */
export class ChatBody implements SequencesAnswer {
  readonly sequences: readonly EmulatedSequence[];
  readonly everyToken = false;
  readonly #exchange: ServedRequest;
  readonly #context: ChatAnswerContext;
  readonly #leading: () => HeaderList;

  constructor(
    exchange: ServedRequest,
    context: ChatAnswerContext,
    sequences: readonly EmulatedSequence[],
    leading: () => HeaderList,
  ) {
    this.sequences = sequences;
    this.#exchange = exchange;
    this.#context = context;
    this.#leading = leading;
  }

  advance(): void {
    if (!isComplete(this) || !isOpen(this.#exchange)) return;
    sendJson(this.#exchange, 200, chatJson(this.#context, this.sequences), this.#leading());
  }

  fail(error: ApiError): void {
    if (isOpen(this.#exchange)) sendJson(this.#exchange, error.code, error.json);
  }
}

function chatJson(context: ChatAnswerContext, sequences: readonly EmulatedSequence[]): string {
  const { sampling, tokenizer, blockTokens } = context;
  const prompt = sequences[0]?.prompt ?? new Int32Array(0);
  const totals = totalUsage(sequences, blockTokens);
  const scores = sampling.promptLogprobs;
  const body = {
    id: context.id,
    object: "chat.completion",
    created: context.created,
    model: context.model,
    choices: sequences.map((sequence) => chatChoice(context, sequence)),
    service_tier: null,
    system_fingerprint: context.fingerprint,
    usage: JSON.parse(usageJson("chat", totals, context.promptTokensDetails && context.detailedUsage)) as unknown,
    prompt_logprobs: scores === undefined ? null : promptLogprobs(tokenizer, prompt, scores),
    prompt_token_ids: sampling.returnTokenIds ? [...prompt] : null,
    prompt_text: null,
    kv_transfer_params: sequences[0]?.handedOver ?? null,
    ec_transfer_params: null,
    metrics: null,
  };
  return JSON.stringify(body);
}

function chatChoice(context: ChatAnswerContext, sequence: EmulatedSequence): unknown {
  const { request, tokenizer, sampling } = context;
  const { plan, produced } = sequence;
  const tokens = plan.tokens.subarray(0, produced);
  return {
    index: sequence.choice,
    message: chatMessage(context, sequence),
    logprobs: request.topLogprobs === undefined ? null : chatLogprobs(tokenizer, tokens, request.topLogprobs),
    finish_reason: chatFinish(context, sequence),
    stop_reason: sequence.finish === "stop" ? plan.stopReason : null,
    token_ids: sampling.returnTokenIds ? [...tokens] : null,
    routed_experts: null,
  };
}

function chatMessage(context: ChatAnswerContext, sequence: EmulatedSequence): unknown {
  const text = textBetween(sequence.plan, 0, sequence.produced);
  const { tooling } = context.request;
  const called = context.toolCall?.parse(text.length);
  const empty = { refusal: null, annotations: null, audio: null, function_call: null };
  // A call that was cut short is text to the parser.
  if (tooling.kind !== "call" || called === undefined) {
    return { role: "assistant", content: text, ...empty, reasoning: null };
  }
  const id = context.toolCallIds[sequence.choice] ?? "";
  const call = { id, type: "function", function: { name: tooling.name, arguments: called } };
  return { role: "assistant", content: "", ...empty, tool_calls: [call], reasoning: null };
}

/** A required tool call that came to its end finishes as "tool_calls"; a named one as "stop", as vLLM has it. */
export function chatFinish(context: ChatAnswerContext, sequence: EmulatedSequence): string | null {
  const { tooling } = context.request;
  if (sequence.finish === "stop" && tooling.kind === "call" && tooling.required) return "tool_calls";
  return sequence.finish ?? null;
}
