import { isObject, type JsonObject } from "../http/body.ts";
import type { ChatRequest } from "../openai/chat-request.ts";
import { readChatPrompt } from "../openai/chat-request.ts";
import { FieldReader } from "../http/field-reader.ts";
import { readSampling } from "../generation/sampling.ts";
import type { ChatPrompt } from "../tokenizer/chat-prompt.ts";

/** A body of /v1/messages as the chat request that vLLM makes of it. Throws ApiError 400. */
export function readMessagesRequest(body: JsonObject, model: string): ChatRequest {
  const fields = new FieldReader(body);
  const named = fields.string("model") ?? "";
  if (named === "" && body["model"] === undefined) fields.missing("model");
  const maxTokens = fields.int("max_tokens");
  if (maxTokens === undefined && (body["max_tokens"] ?? undefined) === undefined) fields.missing("max_tokens");
  if (maxTokens !== undefined && maxTokens < 1) refuseMaxTokens(fields, maxTokens);
  if (body["messages"] === undefined) fields.missing("messages");
  fields.check();
  const prompt = readMessagesPrompt(body, model);
  const translated = new FieldReader({ ...body, stop: body["stop_sequences"] });
  const sampling = readSampling(translated, maxTokens);
  return { model: named, prompt, sampling, tooling: { kind: "text" }, topLogprobs: undefined };
}

function refuseMaxTokens(fields: FieldReader, maxTokens: number): void {
  const reason = "max_tokens must be positive";
  const rest = `, 'ctx': {'error': ValueError('${reason}')}`;
  fields.refuse("max_tokens", "value_error", `Value error, ${reason}`, maxTokens, rest);
}

/** The conversation of a body of /v1/messages or /v1/messages/count_tokens. */
export function readMessagesPrompt(body: JsonObject, model: string): ChatPrompt {
  const fields = new FieldReader(body);
  const messages = fields.list("messages");
  if (messages === undefined && (body["messages"] ?? undefined) === undefined) fields.missing("messages");
  fields.check();
  const { system } = body;
  const turns = (messages ?? []).map(flattenTurn);
  const first = system === undefined ? [] : [{ role: "system", content: flattenBlocks(system) }];
  return readChatPrompt(new FieldReader({ messages: [...first, ...turns] }), [...first, ...turns], model);
}

function flattenTurn(message: unknown): unknown {
  return isObject(message) ? { ...message, content: flattenBlocks(message["content"]) } : message;
}

/** Blocks as chat content parts: tool uses and tool results become text. */
function flattenBlocks(content: unknown): unknown {
  if (!Array.isArray(content)) return content;
  return content.map((block: unknown) => {
    if (!isObject(block)) return block;
    if (block["type"] === "tool_result") return { type: "text", text: JSON.stringify(block["content"] ?? "") };
    if (block["type"] === "tool_use") return { type: "text", text: JSON.stringify(block["input"] ?? {}) };
    return block;
  });
}
