import { nameHash, randomFor } from "#core/random.ts";
import { hashTokens } from "../generation/block-hash.ts";
import type { Sequence } from "../generation/sequence.ts";
import type { JsonObject } from "../http/body.ts";
import type { Exchange } from "../http/exchange.ts";
import { ChatBody, type ChatContext } from "../openai/chat-body.ts";
import { readChatBatch, readChatRequest, type ChatRequest } from "../openai/chat-request.ts";
import { ChatStream } from "../openai/chat-stream.ts";
import { sampleSchema } from "../openai/schema-sample.ts";
import type { Service } from "../service.ts";
import type { Piece } from "../tokenizer/tokenizer.ts";
import { checkDataParallelRank, loadHeaders } from "./engine-header.ts";

/** POST /v1/chat/completions. */
export async function handleChat(service: Service, exchange: Exchange, body: JsonObject): Promise<void> {
  const { model: served, enableAutoToolChoice } = service.options;
  const request = readChatRequest(body, { model: served, enableAutoToolChoice });
  const model = service.resolveModel(request.model);
  const sampling = service.priorityOf(exchange, request.sampling);
  checkDataParallelRank(exchange);
  service.checkServing(exchange);
  const sequences = await chatSequences(service, exchange, { ...request, sampling }, model, 0);
  service.admit(sequences.length);
  const context: ChatContext = {
    ...service.answerContext(exchange, "chatcmpl", model, sampling),
    request,
    toolCallIds: request.tooling.kind === "call" ? sequences.map(() => `chatcmpl-tool-${service.ids.next(2)}`) : [],
    detailedUsage: true,
  };
  if (sampling.stream !== undefined) service.run(exchange, new ChatStream(exchange, context, sequences));
  else service.run(exchange, new ChatBody(exchange, context, sequences, () => loadHeaders(service, exchange)));
}

/** POST /v1/chat/completions/batch: several conversations, answered together as one body. */
export async function handleChatBatch(service: Service, exchange: Exchange, body: JsonObject): Promise<void> {
  const { model: served, enableAutoToolChoice } = service.options;
  const requests = readChatBatch(body, { model: served, enableAutoToolChoice });
  const [first] = requests;
  if (first === undefined) return handleChat(service, exchange, { ...body, messages: [] });
  const model = service.resolveModel(first.model);
  service.checkServing(exchange);
  const sequences: Sequence[] = [];
  for (const request of requests) {
    sequences.push(...(await chatSequences(service, exchange, request, model, sequences.length)));
  }
  service.admit(sequences.length);
  const context = service.answerContext(exchange, "chatcmpl", model, first.sampling);
  const chat = { ...context, request: first, toolCallIds: [], detailedUsage: false };
  service.run(exchange, new ChatBody(exchange, chat, sequences, () => loadHeaders(service, exchange)));
}

/** Applies the template, checks the length and decides the answers. Throws ApiError 400. */
export async function chatSequences(
  service: Service,
  exchange: Exchange,
  request: ChatRequest,
  model: string,
  firstChoice: number,
): Promise<Sequence[]> {
  const { sampling } = request;
  const prompt = await service.tokenizer.encodeChat(request.prompt);
  const maxTokens = service.resolveMaxTokens(prompt, false, sampling);
  const job = {
    prompt,
    fromIds: false,
    sampling,
    model,
    firstChoice,
    scoresPrompt: sampling.promptLogprobs !== undefined,
    forced: await forcedPieces(service, request, prompt),
  };
  return service.sequencesOf(job, maxTokens, exchange);
}

async function forcedPieces(
  service: Service,
  { tooling }: ChatRequest,
  prompt: Int32Array,
): Promise<readonly Piece[] | undefined> {
  if (tooling.kind === "text") return undefined;
  const value = sampleSchema(tooling.schema, randomFor(hashTokens(prompt), nameHash("schema")));
  return service.tokenizer.pieces(JSON.stringify(value ?? null));
}
