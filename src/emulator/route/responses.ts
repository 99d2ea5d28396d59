import type { JsonObject } from "../http/body.ts";
import type { ServedRequest } from "../http/exchange.ts";
import { readChatPrompt, type ChatRequest } from "../openai/chat-request.ts";
import { FieldReader } from "../http/field-reader.ts";
import { ResponsesBody, ResponsesStream } from "../openai/responses-answer.ts";
import { readSampling } from "../generation/sampling.ts";
import type { Service } from "../service/service.ts";
import { chatSequences } from "./chat.ts";

/** POST /v1/responses: a text or messages in, one body or a stream out. */
export async function handleResponses(service: Service, exchange: ServedRequest, body: JsonObject): Promise<void> {
  const fields = new FieldReader(body);
  const named = fields.string("model") ?? "";
  const instructions = fields.string("instructions") ?? null;
  const request = readRequest(service, fields, named, instructions);
  const model = service.resolveModel(named);
  service.checkServing(exchange);
  const sequences = await chatSequences(service, exchange, request, model, 0);
  service.admit(sequences.length);
  const context = {
    ...service.answerContext(exchange, "resp", model, request.sampling),
    messageId: `msg_${service.ids.next(2)}`,
    instructions,
    maxOutputTokens: sequences[0]?.maxTokens ?? 0,
  };
  if (request.sampling.stream !== undefined) service.run(exchange, new ResponsesStream(exchange, context, sequences));
  else service.run(exchange, new ResponsesBody(exchange, context, sequences));
}

function readRequest(service: Service, fields: FieldReader, model: string, instructions: string | null): ChatRequest {
  const { input } = fields.body;
  if ((input ?? undefined) === undefined) fields.missing("input");
  const turns = typeof input === "string" ? [{ role: "user", content: input }] : (fields.list("input") ?? []);
  const system = instructions === null ? [] : [{ role: "system", content: instructions }];
  const maxTokens = fields.int("max_output_tokens");
  fields.check();
  const prompt = readChatPrompt(fields, [...system, ...turns], service.options.model);
  const sampling = readSampling(fields, maxTokens);
  return { model, prompt, sampling, tooling: { kind: "text" }, topLogprobs: undefined };
}
