import { type Refusal, refusal } from "../http/errors.ts";
import type { Fields } from "../base/fields.ts";
import type { Dialect } from "../http/route.ts";
import type { ChatMessage, PromptSource, TokenizedPrompt } from "../tokenizer/text/tokenizer.ts";
import type { GatewayLimits } from "../http/limits.ts";
import { EMPTY_CHAIN } from "#core/prompt/block-chain.ts";

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

/**
 * What the engine reads of a prompt whose client set vLLM's `truncate_prompt_tokens`. The prompt itself where nothing is
 * cut; else one that is no longer exact.
 *
 * With `truncation_side` "right" its beginning stays, and so do the blocks within it. Without that vLLM cuts on the left:
 * where it then begins depends on its length, so nothing that it shares with other prompts stands where theirs does. -1
 * cuts to the model's length, which is not known here. A value that vLLM refuses changes nothing.
 */
export function truncated(prompt: TokenizedPrompt, fields: Fields | undefined): TokenizedPrompt {
  const limit = limitIn(fields);
  if (limit === undefined) return prompt;
  if (limit === TO_MODEL_LENGTH) return { ...prompt, exact: false };
  if (prompt.exact && prompt.promptTokens <= limit) return prompt;
  const promptTokens = Math.min(limit, prompt.promptTokens);
  // An estimate may be too low, but where it is, the beginning is still the better guess.
  const uncut = promptTokens === prompt.promptTokens;
  const blocks = uncut ? prompt.blocks : fields?.["truncation_side"] === "right" ? leading(prompt, limit) : EMPTY_CHAIN;
  return { ...prompt, blocks, promptTokens, exact: false };
}

/**
 * Tokens of all prompts of a request, of whose first the engine reads `prompt`. The others are known by their length
 * together, as `scale` gives it, and each is cut like the first: exact where the limit is above all of them or below.
 */
export function tokensOfAll(
  whole: TokenizedPrompt,
  prompt: TokenizedPrompt,
  { count, scale }: Pick<ParsedPrompt, "count" | "scale">,
  fields: Fields | undefined,
): number {
  const limit = limitIn(fields) ?? TO_MODEL_LENGTH;
  if (limit === TO_MODEL_LENGTH || count === 1) return Math.round(prompt.promptTokens * scale);
  return Math.round(prompt.promptTokens + Math.min(whole.promptTokens * (scale - 1), limit * (count - 1)));
}

const TO_MODEL_LENGTH = -1;

/** Undefined where there is none, or one that vLLM refuses. */
function limitIn(fields: Fields | undefined): number | undefined {
  const limit = fields?.["truncate_prompt_tokens"];
  return typeof limit === "number" && Number.isSafeInteger(limit) && limit >= TO_MODEL_LENGTH ? limit : undefined;
}

function leading({ blocks }: TokenizedPrompt, tokens: number): TokenizedPrompt["blocks"] {
  const length = Math.min(blocks.length, Math.floor(tokens / blocks.blockTokens));
  return { hashes: blocks.hashes.subarray(0, 2 * length), length, blockTokens: blocks.blockTokens };
}
