import { type Refusal, refusal } from "../http/errors.ts";
import type { Fields } from "../base/fields.ts";
import type { Dialect } from "../http/route.ts";
import type { ChatMessage, PromptSource } from "../tokenizer/text/tokenizer.ts";
import type { GatewayLimits } from "../http/limits.ts";

/** What a request asks the engine to read. */
export interface ParsedPrompt {
  /** The first prompt, which stands for all; undefined where there is no text. */
  readonly source: PromptSource | undefined;
  /** Number of prompts. */
  readonly count: number;
  /** Length of all prompts over the length of the first, for counting their tokens without encoding each. */
  readonly scale: number;
}

/** `beginning` is what a chat's messages begin with, where that is known. */
export function parsePrompt(dialect: Dialect, fields: Fields, beginning?: readonly unknown[]): ParsedPrompt | Refusal {
  switch (dialect) {
    case "chat":
      return parseChat(fields, beginning);
    case "completions":
      return parseCompletion(fields);
    case "messages":
    case "responses":
    case "other":
      return parseOther(fields);
  }
}

type Chat = Extract<PromptSource, { kind: "chat" }>;

export const NO_TEXT: ParsedPrompt = { source: undefined, count: 1, scale: 1 };

function one(source: PromptSource): ParsedPrompt {
  return { source, count: 1, scale: 1 };
}

function parseChat(fields: Fields, beginning: readonly unknown[] | undefined): ParsedPrompt | Refusal {
  const messages = fields["messages"];
  if (messages === undefined) return refusal("bad-request", "`messages` is required.", "messages");
  if (!Array.isArray(messages)) return refusal("bad-request", "`messages` must be an array.", "messages");
  if (messages.length === 0) {
    return refusal("bad-request", "`messages` is empty; provide at least one message.", "messages");
  }
  const wrong = messages.findIndex((message) => !isMessage(message));
  if (wrong >= 0) {
    return refusal(
      "bad-request",
      `\`messages[${wrong}]\` must be an object with a string \`role\`.`,
      `messages[${wrong}]`,
    );
  }
  const source = chat(messages as ChatMessage[], fields);
  return one(beginning === undefined ? source : { ...source, beginning: beginning as ChatMessage[] });
}

const TEMPLATE_FIELDS = [
  "chat_template",
  "add_special_tokens",
  "chat_template_kwargs",
  "add_generation_prompt",
  "continue_final_message",
  "documents",
  "reasoning_effort",
] as const;

function chat(messages: readonly ChatMessage[], fields: Fields): Chat {
  const template: Record<string, unknown> = {};
  for (const name of TEMPLATE_FIELDS) if (fields[name] !== undefined) template[name] = fields[name];
  const tools = Array.isArray(fields["tools"]) ? (fields["tools"] as unknown[]) : undefined;
  return { kind: "chat", messages, tools, template };
}

function isMessage(value: unknown): value is ChatMessage {
  return typeof value === "object" && value !== null && "role" in value && typeof value.role === "string";
}

/** vLLM's prompt: text, token ids, or an array of either. */
function parseCompletion(fields: Fields): ParsedPrompt | Refusal {
  const prompt = fields["prompt"];
  if (prompt === undefined || prompt === null) {
    if (fields["prompt_embeds"] !== undefined) return NO_TEXT;
    return refusal("bad-request", "`prompt` is required.", "prompt");
  }
  if (prompt === "") return refusal("bad-request", "`prompt` is empty.", "prompt");
  if (Array.isArray(prompt) && prompt.length === 0) return refusal("bad-request", "`prompt` is empty.", "prompt");
  return (
    textOrTokens(prompt, fields["add_special_tokens"] !== false) ??
    refusal(
      "bad-request",
      "`prompt` must be a string, an array of strings, an array of token ids, or an array of such arrays.",
      "prompt",
    )
  );
}

function textOrTokens(value: unknown, specialTokens = true): ParsedPrompt | undefined {
  const text = (given: string) => ({ kind: "text", text: given, ...(specialTokens ? {} : NO_SPECIAL_TOKENS) }) as const;
  if (typeof value === "string") return one(text(value));
  if (!Array.isArray(value) || value.length === 0) return undefined;
  if (isTokens(value)) return one({ kind: "tokens", tokens: value });
  if (value.every((item) => typeof item === "string")) {
    return many(value.length, lengths(value), text(value[0]!));
  }
  if (value.every((item): item is number[] => Array.isArray(item) && isTokens(item))) {
    return many(value.length, lengths(value), { kind: "tokens", tokens: value[0]! });
  }
  return undefined;
}

const NO_SPECIAL_TOKENS = { specialTokens: false } as const;

function many(count: number, total: number, source: Extract<PromptSource, { kind: "text" | "tokens" }>): ParsedPrompt {
  const first = source.kind === "text" ? source.text.length : source.tokens.length;
  return { source, count, scale: first > 0 ? total / first : count };
}

function lengths(items: readonly { readonly length: number }[]): number {
  return items.reduce((sum, item) => sum + item.length, 0);
}

function isTokens(value: readonly unknown[]): value is number[] {
  return value.every((item) => typeof item === "number" && Number.isSafeInteger(item) && item >= 0);
}

/** Anthropic's messages, OpenAI's responses and embeddings, and whatever else has text under a known name. */
function parseOther(fields: Fields): ParsedPrompt {
  const system = fields["system"] ?? fields["instructions"];
  const before: ChatMessage[] = system === undefined || system === null ? [] : [{ role: "system", content: system }];
  for (const name of ["messages", "input"]) {
    const list = fields[name];
    if (Array.isArray(list) && list.length > 0 && list.every(isMessage)) return one(chat([...before, ...list], fields));
  }
  const input = fields["input"];
  if (before.length > 0 && typeof input === "string") {
    return one(chat([...before, { role: "user", content: input }], fields));
  }
  return (
    textOrTokens(input) ?? textOrTokens(fields["prompt"]) ?? (before.length > 0 ? one(chat(before, fields)) : NO_TEXT)
  );
}

type CountLimit = "messagesMax" | "contentPartsMax" | "toolsMax" | "promptsMax";

/** What a request asks the engine to read has more of something than the limits allow; undefined where it has not. */
export function beyondLimits({ source, count }: ParsedPrompt, limits: GatewayLimits): Refusal | undefined {
  if (count > limits.promptsMax) return beyond("prompt", `${count} prompts`, "promptsMax", limits);
  if (source?.kind !== "chat") return undefined;
  const { messages, tools } = source;
  if (messages.length > limits.messagesMax) {
    return beyond("messages", `${messages.length} messages`, "messagesMax", limits);
  }
  if (tools !== undefined && tools.length > limits.toolsMax) {
    return beyond("tools", `${tools.length} tools`, "toolsMax", limits);
  }
  let parts = 0;
  for (let at = 0; at < messages.length; at++) {
    const { content } = messages[at]!;
    if (Array.isArray(content)) parts += content.length;
    if (parts <= limits.contentPartsMax) continue;
    return beyond(`messages[${at}].content`, `${parts} or more content parts`, "contentPartsMax", limits);
  }
  return undefined;
}

function beyond(param: string, what: string, limit: CountLimit, limits: GatewayLimits): Refusal {
  const message = `The request has ${what}; this gateway accepts at most ${limits[limit]} (its limits.${limit}).`;
  return refusal("bad-request", message, param);
}
