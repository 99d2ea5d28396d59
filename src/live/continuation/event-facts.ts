import { eventData } from "../answer/sse-event.ts";
import { valueAt } from "../answer/json-value.ts";
import { type Fields, isFields } from "../base/fields.ts";
import type { StreamName } from "./kept-stream-options.ts";

/** One event of a stream with one choice, as it is kept. */
export interface EventFacts {
  readonly name: StreamName;
  readonly text: string;
  /** Undefined where the engine sends none. */
  readonly ids: readonly number[] | undefined;
  /** What of the output is not text, by the engine's name for it. */
  readonly otherPart: string | undefined;
  /** The model has ended. */
  readonly ended: boolean;
  /** Brackets of lists of ids in the bytes, and of the prompt's; -1 where there is none. */
  readonly idsAt: readonly number[];
  readonly promptIdsAt: number;
  /** The text's opening quote; -1 where there is no text. */
  readonly textAt: number;
}

/** Reads an event of chat or completions in bytes[start..end); undefined where it holds none. */
export function eventFacts(
  bytes: Buffer,
  start: number,
  end: number,
  dialect: "chat" | "completions",
): EventFacts | undefined {
  const promptIdsAt = listAt(bytes, PROMPT_IDS, start, end);
  const event = eventData(withoutList(bytes, start, end, promptIdsAt));
  if (event === undefined) return undefined;
  const { id, object, created, model, choices } = event;
  const first: unknown = Array.isArray(choices) ? choices[0] : undefined;
  const choice: Fields = isFields(first) ? first : {};
  const output: Fields = dialect === "chat" ? (isFields(choice["delta"]) ? choice["delta"] : {}) : choice;
  const textName = dialect === "chat" ? "content" : "text";
  const text = output[textName];
  const idsAt = listAt(bytes, IDS, start, end);
  const textAt = valueAt(bytes, TEXT_NAMES[dialect], start, end);
  return {
    name: { id, object, created, model },
    text: typeof text === "string" ? text : "",
    ids: idList(choice["token_ids"]),
    otherPart: OTHER_PARTS.find((name) => isPart(output[name])),
    ended: typeof choice["finish_reason"] === "string",
    idsAt: idsAt < 0 ? [] : [idsAt],
    promptIdsAt,
    textAt: bytes[textAt] === QUOTE ? textAt : -1,
  };
}

const OTHER_PARTS = ["tool_calls", "function_call", "reasoning", "reasoning_content", "refusal", "audio"] as const;
const TEXT_NAMES = { chat: Buffer.from('"content"'), completions: Buffer.from('"text"') } as const;
const IDS = Buffer.from('"token_ids"');
const PROMPT_IDS = Buffer.from('"prompt_token_ids"');
const NULL = Buffer.from("null");
const BRACKET = 0x5b;
const BRACKET_CLOSED = 0x5d;
const QUOTE = 0x22;

/** A prompt has thousands of ids, which cost less to read as bytes. */
function withoutList(bytes: Buffer, start: number, end: number, listAt: number): Buffer {
  if (listAt < 0) return bytes.subarray(start, end);
  const behind = bytes.indexOf(BRACKET_CLOSED, listAt) + 1;
  return Buffer.concat([bytes.subarray(start, listAt), NULL, bytes.subarray(behind, end)]);
}

function listAt(bytes: Buffer, name: Buffer, start: number, end: number): number {
  const at = valueAt(bytes, name, start, end);
  return at >= 0 && bytes[at] === BRACKET ? at : -1;
}

function idList(value: unknown): readonly number[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const all: readonly unknown[] = value;
  return all.every((id): id is number => typeof id === "number" && Number.isSafeInteger(id) && id >= 0)
    ? all
    : undefined;
}

function isPart(value: unknown): boolean {
  if (typeof value === "string" || Array.isArray(value)) return value.length > 0;
  return isFields(value);
}
