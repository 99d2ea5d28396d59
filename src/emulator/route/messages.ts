import { MessagesBody, messagesError, MessagesStream } from "../anthropic/messages-answer.ts";
import { readMessagesPrompt, readMessagesRequest } from "../anthropic/messages-request.ts";
import { ApiError } from "../http/api-error.ts";
import type { JsonObject } from "../http/body.ts";
import type { ServedRequest } from "../http/exchange.ts";
import { sendJson } from "../http/reply.ts";
import { FieldReader } from "../http/field-reader.ts";
import type { Service } from "../service/service.ts";
import { chatSequences } from "./chat.ts";
import { loadHeaders } from "./engine-header.ts";

/** POST /v1/messages. */
export async function handleMessages(service: Service, exchange: ServedRequest, body: JsonObject): Promise<void> {
  try {
    await answer(service, exchange, body);
  } catch (error) {
    // A body of the wrong form is reported in FastAPI's shape, as everywhere.
    if (!(error instanceof ApiError) || error.type === "Bad Request") throw error;
    sendJson(exchange, error.code, messagesError(error));
  }
}

async function answer(service: Service, exchange: ServedRequest, body: JsonObject): Promise<void> {
  const request = readMessagesRequest(body, service.options.model);
  const model = service.resolveModel(request.model);
  const sampling = service.priorityOf(exchange, request.sampling);
  service.checkServing(exchange);
  const sequences = await chatSequences(service, exchange, { ...request, sampling }, model, 0);
  service.admit(sequences.length);
  const context = service.answerContext(exchange, "chatcmpl", model, sampling);
  if (sampling.stream !== undefined) service.run(exchange, new MessagesStream(exchange, context, sequences));
  else service.run(exchange, new MessagesBody(exchange, context, sequences, () => loadHeaders(service, exchange)));
}

/** POST /v1/messages/count_tokens. */
export async function handleCountTokens(service: Service, exchange: ServedRequest, body: JsonObject): Promise<void> {
  service.resolveModel(new FieldReader(body).string("model") ?? "");
  service.checkServing(exchange);
  const { length } = await service.tokenizer.encodeChat(readMessagesPrompt(body, service.options.model));
  const answered = { input_tokens: length, context_management: { original_input_tokens: length } };
  sendJson(exchange, 200, JSON.stringify(answered));
}
