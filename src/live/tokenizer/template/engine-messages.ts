import { type Fields, isFields } from "../../base/fields.ts";
import type { ChatMessage } from "../text/tokenizer.ts";

/** A message as vLLM hands it to a chat template. */
export type EngineMessage = Readonly<Record<string, unknown>> & {
  readonly role: string;
  readonly content: string | readonly EnginePart[];
};

export interface EnginePart {
  readonly type: "text";
  readonly text: string;
}

/** Whether a template takes content as one string or loops over its parts. */
export type ContentFormat = "string" | "parts";

const TEXT_FIELD_BY_TYPE: ReadonlyMap<unknown, string> = new Map([
  ["text", "text"],
  ["input_text", "text"],
  ["output_text", "text"],
  ["refusal", "refusal"],
  ["thinking", "thinking"],
]);
/** vLLM drops this line of a system message, whose value changes with every request. */
const BILLING_HEADER = "x-anthropic-billing-header";

/** The messages as vLLM 0.32 prepares them; undefined where content is no text, or vLLM refuses it. */
export function engineMessages(messages: readonly ChatMessage[], format: ContentFormat): EngineMessage[] | undefined {
  const prepared: EngineMessage[] = [];
  for (const message of messages) {
    const one = engineMessage(message, format);
    if (one === undefined) return undefined;
    prepared.push(one);
  }
  return prepared;
}

/** The texts of a message's parts, the empty ones left out for the format "string"; undefined where one is no text. */
export function contentTexts(message: ChatMessage, format: ContentFormat): string[] | undefined {
  const { content, role } = message;
  if (content === undefined || content === null) return [];
  const parts: readonly unknown[] = Array.isArray(content) ? content : [content];
  const texts: string[] = [];
  for (const part of parts) {
    const text = partText(part);
    if (text === undefined) return undefined;
    if (text === null || (text === "" && format === "string")) continue;
    if (role !== "system" || !text.startsWith(BILLING_HEADER)) {
      texts.push(text);
      continue;
    }
    const lineEnd = text.indexOf("\n");
    if (lineEnd >= 0 && lineEnd + 1 < text.length) texts.push(text.slice(lineEnd + 1));
  }
  return texts;
}

function engineMessage(message: ChatMessage, format: ContentFormat): EngineMessage | undefined {
  const texts = contentTexts(message, format);
  if (texts === undefined) return undefined;
  const { role } = message;
  const joined = format === "string" || role === "tool";
  const content = joined ? texts.join("\n") : texts.map((text): EnginePart => ({ type: "text", text }));
  const prepared: Record<string, unknown> & { role: string; content: typeof content } = { role, content };
  if (role === "assistant") {
    const calls = toolCalls(message["tool_calls"]);
    if (calls === undefined) return undefined;
    if (calls.length > 0) prepared["tool_calls"] = calls;
    const reasoning = message["reasoning"];
    if (reasoning !== undefined && reasoning !== null) {
      prepared["reasoning"] = reasoning;
      prepared["reasoning_content"] = reasoning;
    }
  }
  if (role === "tool" && "tool_call_id" in message) prepared["tool_call_id"] = message["tool_call_id"];
  for (const field of ["name", "task"]) if (typeof message[field] === "string") prepared[field] = message[field];
  if (role === "developer") prepared["tools"] = message["tools"] ?? null;
  return prepared;
}

/** null for a part that vLLM skips. */
function partText(part: unknown): string | null | undefined {
  if (typeof part === "string") return part;
  if (!isFields(part)) return undefined;
  const field = TEXT_FIELD_BY_TYPE.get(part["type"]);
  if (field === undefined) return undefined;
  const text = part[field];
  if (typeof text === "string") return text;
  return text === undefined || text === null ? null : undefined;
}

/** Arguments are an object to a template, whatever the client sent. */
function toolCalls(value: unknown): Fields[] | undefined {
  if (!Array.isArray(value)) return [];
  const calls: Fields[] = [];
  for (const call of value as unknown[]) {
    if (!isFields(call)) return undefined;
    const called = call["function"];
    if (!isFields(called) || (call["type"] ?? "function") !== "function") return undefined;
    calls.push({ ...call, function: { ...called, arguments: argumentsObject(called["arguments"]) } });
  }
  return calls;
}

function argumentsObject(value: unknown): Fields {
  if (typeof value !== "string") return isFields(value) ? value : {};
  try {
    const parsed: unknown = JSON.parse(value);
    return isFields(parsed) ? parsed : {};
  } catch {
    return {};
  }
}
