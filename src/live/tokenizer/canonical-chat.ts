import { createHash } from "node:crypto";
import type { BegunChat } from "./begun-chats.ts";
import type { ChatMessage, PromptSource } from "./text/tokenizer.ts";
import type { Step } from "./text/word-source.ts";

const PLAIN_ROLES: ReadonlySet<string> = new Set(["system", "developer", "user", "assistant", "tool"]);
/** Tag of a step whose text is more than content, so that no content can equal it. */
const COMPOSED = "composed";
/** Fields of a body that change what the engine reads from the first token on. */
const LEADING_FIELDS = [
  "chat_template",
  "add_special_tokens",
  "chat_template_kwargs",
  "documents",
  "reasoning_effort",
] as const;
const UNREADABLE = "unreadable";

type Chat = Extract<PromptSource, { kind: "chat" }>;

/**
 * A chat as steps that need no template: equal prompts give equal steps, and a longer conversation repeats the steps of
 * a shorter one. These come first: tools, where templates put them, and fields of the body.
 */
export function leadingSteps(chat: Chat): Step[] {
  const steps: Step[] = [];
  if (chat.tools !== undefined && chat.tools.length > 0) steps.push({ tag: "tools", text: json(chat.tools) });
  for (const field of LEADING_FIELDS) {
    const value = chat.template[field];
    if (value !== undefined && value !== null) steps.push({ tag: `field ${field}`, text: json(value) });
  }
  return steps;
}

/** Then one for each message, or for each that follows a beginning. */
export function messageSteps({ messages }: Chat, begun?: BegunChat): Step[] {
  const steps: Step[] = [];
  for (let at = begun?.messages ?? 0; at < messages.length; at++) steps.push(messageStep(messages[at]!));
  return steps;
}

/** True where part of the prompt is no text, so that its tokens are not those of the steps. */
export function hasMedia(messages: readonly ChatMessage[]): boolean {
  return messages.some(({ content }) => Array.isArray(content) && content.some((part) => textOf(part) === undefined));
}

function messageStep(message: ChatMessage): Step {
  const { role, content } = message;
  const plain = isPlain(message) ? plainText(content) : undefined;
  if (plain !== undefined) return { tag: role, text: plain };
  const pieces = [role];
  for (const part of parts(content)) pieces.push(textOf(part) ?? digest(part));
  for (const field of Object.keys(message)) {
    if (field === "role" || field === "content") continue;
    pieces.push(field, json(message[field]));
  }
  return { tag: COMPOSED, text: pieces.map(terminated).join("") };
}

function isPlain(message: ChatMessage): boolean {
  for (const field in message) if (field !== "role" && field !== "content") return false;
  return PLAIN_ROLES.has(message.role);
}

/** Engines join text parts with a newline. */
function plainText(content: unknown): string | undefined {
  if (typeof content === "string") return content;
  const texts = parts(content).map(textOf);
  return texts.every((text) => text !== undefined) ? texts.join("\n") : undefined;
}

function parts(content: unknown): readonly unknown[] {
  if (Array.isArray(content)) return content;
  return content === undefined || content === null ? [] : [content];
}

/** An end instead of a length in front, so that a text and its continuation begin alike. */
function terminated(piece: string): string {
  return `${piece.replaceAll("\0", "\0a")}\0b`;
}

function textOf(part: unknown): string | undefined {
  if (typeof part === "string") return part;
  if (typeof part !== "object" || part === null || !("text" in part)) return undefined;
  return typeof part.text === "string" ? part.text : undefined;
}

/** Stands for an image or a sound, which may be megabytes: equal where the part is equal. */
function digest(part: unknown): string {
  return createHash("sha256").update(json(part)).digest("base64");
}

/** JSON.stringify overflows the stack on what JSON.parse still reads, if it is nested deeply enough. */
function json(value: unknown): string {
  try {
    return JSON.stringify(value) ?? UNREADABLE;
  } catch {
    return UNREADABLE;
  }
}
