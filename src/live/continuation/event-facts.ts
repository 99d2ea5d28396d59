import { eventData } from "../answer/sse-scanner.ts";
import { valueAt, matchesAt } from "../answer/answer-json.ts";
import { type Fields, isFields } from "../base/fields.ts";
import type { StreamName } from "./kept-stream.ts";

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

/**
 * Where the token ids lie of an event that has the form in which vLLM writes one of text that is not the last:
 * `"token_ids":[`, ids, `]}]}` at its end, behind what a dialect writes before that. -1 where it has another form.
 */
export function idsAtEnd(bytes: Buffer, start: number, end: number, before: Buffer): number {
  let at = end - 1;
  while (at > start && bytes[at]! <= SPACE) at--;
  if (bytes[at] !== BRACE || bytes[at - 1] !== BRACKET_CLOSED || bytes[at - 2] !== BRACE) return -1;
  at -= 3;
  if (bytes[at] !== BRACKET_CLOSED) return -1;
  for (at--; isDigit(bytes[at]) || bytes[at] === COMMA; at--);
  const from = at + 1 - before.length;
  return from >= start && matchesAt(bytes, from, before) ? at : -1;
}

/** What stands before the ids, the bracket included. */
export const BEFORE_IDS = {
  chat: Buffer.from('"logprobs":null,"finish_reason":null,"token_ids":['),
  completions: Buffer.from(
    '"logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":[',
  ),
} as const;

/** Reads the ids of a list that opens at `bracket`; hands on each, and returns the place behind the list. */
export function readIds(bytes: Buffer, bracket: number, take: (id: number) => void): number {
  let at = bracket + 1;
  while (bytes[at] !== BRACKET_CLOSED && at < bytes.length) {
    if (!isDigit(bytes[at])) {
      at++;
      continue;
    }
    let id = 0;
    for (; isDigit(bytes[at]); at++) id = 10 * id + bytes[at]! - ZERO;
    take(id);
  }
  return at + 1;
}

/** All ids of a list that opens at `bracket`, and the place behind it. */
export function idsOf(bytes: Buffer, bracket: number): { readonly ids: Int32Array; readonly behind: number } {
  const closed = bytes.indexOf(BRACKET_CLOSED, bracket);
  // Each id but the first has a comma before it.
  const room = new Int32Array(Math.ceil((closed - bracket) / 2) + 1);
  let count = 0;
  const behind = readIds(bytes, bracket, (id) => {
    room[count++] = id;
  });
  return { ids: room.slice(0, count), behind };
}

/** Hides the list that opens at `bracket`. */
export function hideIds(bytes: Buffer, bracket: number): void {
  blankIds(
    bytes,
    bracket,
    readIds(bytes, bracket, () => {}),
  );
}

/** Writes null over a list, with spaces behind it, as an engine writes that was not asked for ids. */
export function blankIds(bytes: Buffer, bracket: number, behind: number): void {
  const fits = behind - bracket >= NULL.length;
  for (let i = bracket; i < behind; i++) bytes[i] = SPACE;
  if (fits) for (let i = 0; i < NULL.length; i++) bytes[bracket + i] = NULL[i]!;
  else {
    bytes[bracket] = BRACKET;
    bytes[behind - 1] = BRACKET_CLOSED;
  }
}

const BRACE = 0x7d;
const COMMA = 0x2c;
const SPACE = 0x20;
const ZERO = 0x30;

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= ZERO + 9;
}
