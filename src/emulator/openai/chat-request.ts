import { badRequest } from "../http/api-error.ts";
import { isObject, type JsonObject } from "../http/body.ts";
import type { TemplateMessage, ChatPrompt } from "../tokenizer/chat-prompt.ts";
import { FieldReader } from "../http/field-reader.ts";
import { checkLogprobs, readSampling, type Sampling } from "../generation/sampling.ts";
import { readTooling, type Tooling } from "./tooling.ts";

/** A validated body of /v1/chat/completions. */
export interface ChatRequest {
  /** Model that the client named; "" when it named none. */
  readonly model: string;
  readonly prompt: ChatPrompt;
  readonly sampling: Sampling;
  readonly tooling: Tooling;
  /** Alternatives per generated token; undefined when log probabilities were not asked for. */
  readonly topLogprobs: number | undefined;
}

/** What of the server's configuration decides whether a chat request is accepted. */
export interface ChatRules {
  readonly model: string;
  readonly enableAutoToolChoice: boolean;
}

/** Throws ApiError 400 in vLLM's words. */
export function readChatRequest(body: JsonObject, rules: ChatRules): ChatRequest {
  const fields = new FieldReader(body);
  const model = fields.string("model") ?? "";
  const messages = fields.list("messages");
  if (messages === undefined && (body["messages"] ?? undefined) === undefined) fields.missing("messages");
  return finishChatRequest(fields, model, messages ?? [], rules);
}

/** As `readChatRequest`, for a body of /v1/chat/completions/batch: a list of conversations, one request each. */
export function readChatBatch(body: JsonObject, rules: ChatRules): readonly ChatRequest[] {
  const fields = new FieldReader(body);
  const model = fields.string("model") ?? "";
  const conversations = fields.list("messages") ?? fields.missing("messages") ?? [];
  fields.check();
  return conversations.map((messages) =>
    finishChatRequest(fields, model, Array.isArray(messages) ? messages : [], rules),
  );
}

function finishChatRequest(
  fields: FieldReader,
  model: string,
  messages: readonly unknown[],
  rules: ChatRules,
): ChatRequest {
  const logprobs = fields.boolean("logprobs") ?? false;
  const topLogprobs = fields.int("top_logprobs");
  const maxTokens = fields.int("max_completion_tokens") ?? fields.int("max_tokens");
  const prompt = readChatPrompt(fields, messages, rules.model);
  const sampling = readSampling(fields, maxTokens);
  if (topLogprobs !== undefined && topLogprobs !== 0) {
    if (!logprobs) throw badRequest("when using `top_logprobs`, `logprobs` must be set to true.", "top_logprobs");
    checkLogprobs(topLogprobs, "top_logprobs");
  }
  const tooling = readTooling(fields, rules.enableAutoToolChoice);
  return { model, prompt, sampling, tooling, topLogprobs: logprobs ? (topLogprobs ?? 0) : undefined };
}

/** The template's input. Throws ApiError 400 for a content part that a text model cannot take. */
export function readChatPrompt(fields: FieldReader, messages: readonly unknown[], model: string): ChatPrompt {
  const tools = fields.list("tools");
  const addGenerationPrompt = fields.boolean("add_generation_prompt") ?? true;
  const continueFinalMessage = fields.boolean("continue_final_message") ?? false;
  const variables = fields.object("chat_template_kwargs")?.body ?? {};
  const parsed = messages.map((message, index) => readMessage(fields, message, index, model));
  fields.check();
  if (parsed.length === 0) {
    throw badRequest("Cannot apply chat template to an empty conversation. Provide at least one message.");
  }
  if (continueFinalMessage && addGenerationPrompt && fields.body["add_generation_prompt"] === true) {
    throw badRequest("Cannot set both `continue_final_message` and `add_generation_prompt` to True.");
  }
  const generate = addGenerationPrompt && !continueFinalMessage;
  return { messages: parsed, tools, addGenerationPrompt: generate, continueFinalMessage, variables };
}

function readMessage(fields: FieldReader, message: unknown, index: number, model: string): TemplateMessage {
  if (!isObject(message)) {
    fields.refuse(`messages.${index}`, "dict_type", "Input should be a valid dictionary", message);
    return { role: "", content: "", source: {} };
  }
  const { role } = message;
  if (typeof role !== "string") {
    if (role === undefined) fields.refuse(`messages.${index}.role`, "missing", "Field required", message);
    else fields.refuse(`messages.${index}.role`, "string_type", "Input should be a valid string", role);
    return { role: "", content: "", source: message };
  }
  return { role, content: flatten(message, model), source: message };
}

function flatten(message: JsonObject, model: string): string {
  const content = message["content"] ?? "";
  const calls = Array.isArray(message["tool_calls"]) ? JSON.stringify(message["tool_calls"]) : "";
  if (typeof content === "string") return content + calls;
  const parts = Array.isArray(content) ? content : [content];
  return parts.map((part: unknown) => partText(part, model)).join("\n") + calls;
}

function partText(part: unknown, model: string): string {
  if (typeof part === "string") return part;
  if (!isObject(part)) throw badRequest("Content parts must be strings or objects with a `type`.");
  const text = part["text"] ?? part["refusal"] ?? part["thinking"];
  if (typeof text === "string") return text;
  const type = typeof part["type"] === "string" ? part["type"] : "";
  if (/^(image|input_image|input_audio|audio|video)/.test(type)) throw badRequest(`${model} is not a multimodal model`);
  throw badRequest(`Unknown part type: ${type}`);
}
