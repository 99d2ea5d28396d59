import { nameHash, randomFor } from "#core/base/random.ts";
import { hashTokens } from "../generation/block-hash.ts";
import type { EmulatedSequence } from "../generation/sequence.ts";
import type { JsonObject } from "../http/body.ts";
import type { ServedRequest } from "../http/exchange.ts";
import { ChatBody, type ChatAnswerContext } from "../openai/chat-body.ts";
import { readChatBatch, readChatRequest, type ChatRequest } from "../openai/chat-request.ts";
import { ChatStream } from "../openai/chat-stream.ts";
import { sampleSchema } from "../openai/schema-sample.ts";
import { ToolCallText } from "../openai/tool-call.ts";
import type { Service } from "../service/service.ts";
import { checkDataParallelRank, loadHeaders } from "./engine-header.ts";

/** POST /v1/chat/completions. */
export async function handleChat(service: Service, exchange: ServedRequest, body: JsonObject): Promise<void> {
  const { model: served, enableAutoToolChoice } = service.options;
  const request = readChatRequest(body, { model: served, enableAutoToolChoice });
  const model = service.resolveModel(request.model);
  const sampling = service.priorityOf(exchange, request.sampling);
  checkDataParallelRank(exchange);
  service.checkServing(exchange);
  const prompt = await service.tokenizer.encodeChat(request.prompt);
  const forced = forcedText(request, prompt);
  const asked = { sampling, model, prompt, forced: forced?.text, firstChoice: 0 };
  const sequences = await promptSequences(service, exchange, asked);
  service.admit(sequences.length);
  const context: ChatAnswerContext = {
    ...service.answerContext(exchange, "chatcmpl", model, sampling),
    request,
    toolCall: forced?.toolCall,
    toolCallIds: forced?.toolCall === undefined ? [] : sequences.map(() => `chatcmpl-tool-${service.ids.next(2)}`),
    detailedUsage: true,
  };
  if (sampling.stream !== undefined) service.run(exchange, new ChatStream(exchange, context, sequences));
  else service.run(exchange, new ChatBody(exchange, context, sequences, () => loadHeaders(service, exchange)));
}

/** POST /v1/chat/completions/batch: several conversations, answered together as one body. */
export async function handleChatBatch(service: Service, exchange: ServedRequest, body: JsonObject): Promise<void> {
  const { model: served, enableAutoToolChoice } = service.options;
  const requests = readChatBatch(body, { model: served, enableAutoToolChoice });
  const [first] = requests;
  if (first === undefined) return handleChat(service, exchange, { ...body, messages: [] });
  const model = service.resolveModel(first.model);
  service.checkServing(exchange);
  const sequences: EmulatedSequence[] = [];
  for (const request of requests) {
    sequences.push(...(await chatSequences(service, exchange, request, model, sequences.length)));
  }
  service.admit(sequences.length);
  const context = service.answerContext(exchange, "chatcmpl", model, first.sampling);
  const chat = { ...context, request: first, toolCall: undefined, toolCallIds: [], detailedUsage: false };
  service.run(exchange, new ChatBody(exchange, chat, sequences, () => loadHeaders(service, exchange)));
}

/** Applies the template, checks the length and decides the answers, of text alone. Throws ApiError 400. */
export async function chatSequences(
  service: Service,
  exchange: ServedRequest,
  request: ChatRequest,
  model: string,
  firstChoice: number,
): Promise<EmulatedSequence[]> {
  const prompt = await service.tokenizer.encodeChat(request.prompt);
  return promptSequences(service, exchange, {
    sampling: request.sampling,
    model,
    prompt,
    forced: undefined,
    firstChoice,
  });
}

interface AskedChat extends Pick<ChatRequest, "sampling"> {
  readonly model: string;
  readonly prompt: Int32Array;
  /** What the model must write; undefined where that is its own choice. */
  readonly forced: string | undefined;
  readonly firstChoice: number;
}

async function promptSequences(
  service: Service,
  exchange: ServedRequest,
  { sampling, model, prompt, forced, firstChoice }: AskedChat,
): Promise<EmulatedSequence[]> {
  const maxTokens = service.resolveMaxTokens(prompt, false, sampling);
  const pieces = forced === undefined ? undefined : await service.tokenizer.pieces(forced);
  const scoresPrompt = sampling.promptLogprobs !== undefined;
  const job = { prompt, fromIds: false, sampling, model, firstChoice, scoresPrompt, forced: pieces };
  return service.sequencesOf(job, maxTokens, exchange);
}

/** What the model must write where the client asked for a tool call or for JSON. */
function forcedText(
  { tooling }: ChatRequest,
  prompt: Int32Array,
): { readonly text: string; readonly toolCall: ToolCallText | undefined } | undefined {
  if (tooling.kind === "text") return undefined;
  const value = sampleSchema(tooling.schema, randomFor(hashTokens(prompt), nameHash("schema")));
  const json = JSON.stringify(value ?? {});
  if (tooling.kind === "json") return { text: json, toolCall: undefined };
  const toolCall = new ToolCallText(tooling.name, json);
  return { text: toolCall.text, toolCall };
}
