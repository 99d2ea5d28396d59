import { REQUEST_TOKENS_MAX } from "#core/base/units.ts";

/** What an engine reported that it read and wrote for one request. */
export interface Usage {
  /** The whole prompt, with what was cached of it. */
  readonly promptTokens: number | undefined;
  readonly cachedTokens: number | undefined;
  readonly outputTokens: number | undefined;
}

/**
 * Reads the last usage object in the JSON between `start` and `end`: OpenAI's of chat and completions or of responses,
 * or Anthropic's. Undefined where there is none.
 *
 * It reads bytes and leaves the rest of the answer alone. A name between bare quotes with a colon behind it cannot stand
 * inside a JSON string, where the quotes would be escaped; the last usage is the answer's own.
 */
export function findUsage(json: Buffer, start = 0, end: number = json.length): Usage | undefined {
  const from = lastObject(json, start, end);
  if (from < 0) return undefined;
  // A few look-ups in a short string cost less than as many calls out of JavaScript.
  const text = json.toString("latin1", from, Math.min(end, from + USAGE_BYTES_MAX));
  const read = count(text, '"cache_read_input_tokens"');
  return {
    promptTokens: count(text, '"prompt_tokens"') ?? inputTokens(text, read),
    cachedTokens: count(text, '"cached_tokens"') ?? read,
    outputTokens: count(text, '"completion_tokens"') ?? count(text, '"output_tokens"'),
  };
}

/** Anthropic counts what was read from the cache, or put into it, beside `input_tokens`; OpenAI's responses within. */
function inputTokens(text: string, read: number | undefined): number | undefined {
  const input = count(text, '"input_tokens"');
  if (input === undefined) return undefined;
  const tokens = input + (read ?? 0) + (count(text, '"cache_creation_input_tokens"') ?? 0);
  return tokens <= REQUEST_TOKENS_MAX ? tokens : undefined;
}

const USAGE = Buffer.from('"usage"');
const COLON = 0x3a;
const BRACE = 0x7b;
const ZERO = 0x30;
const SPACE = 0x20;
/** No engine's usage object comes near this. */
const USAGE_BYTES_MAX = 4_096;

/** Places with its name that are looked at; an answer has as many as it has choices, and two more. */
const PLACES_MAX = 1_024;

/** Index of the brace that opens the last usage object; -1 if none. */
function lastObject(json: Buffer, start: number, end: number): number {
  let at = json.lastIndexOf(USAGE, end);
  for (let places = 0; at >= start && places < PLACES_MAX; places++) {
    let value = at + USAGE.length;
    while (value < end && json[value]! <= SPACE) value++;
    if (json[value] === COLON) {
      value++;
      while (value < end && json[value]! <= SPACE) value++;
      if (value < end && json[value] === BRACE) return value;
    }
    if (at === 0) return -1;
    at = json.lastIndexOf(USAGE, at - 1);
  }
  return -1;
}

/** The whole number under a name; undefined where the name, a colon behind it or a number in reach is not there. */
function count(text: string, name: string): number | undefined {
  const found = text.indexOf(name);
  if (found < 0) return undefined;
  let at = behindSpace(text, found + name.length);
  if (text.charCodeAt(at) !== COLON) return undefined;
  at = behindSpace(text, at + 1);
  if (!isDigit(text.charCodeAt(at))) return undefined;
  let value = 0;
  for (; isDigit(text.charCodeAt(at)); at++) value = 10 * value + text.charCodeAt(at) - ZERO;
  // A mean that an endless number went into never comes back, and no simulation could hold such a prompt.
  return value <= REQUEST_TOKENS_MAX ? value : undefined;
}

function behindSpace(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) <= SPACE) at++;
  return at;
}

/** NaN, behind the end, is none. */
function isDigit(code: number): boolean {
  return code >= ZERO && code <= ZERO + 9;
}

export type FinishReasons = "no-choice" | "abort" | "unended" | "ended";

/**
 * What the choices in the bytes of OpenAI's JSON say about their end: there is no choice at all, some choice ended in
 * "abort", none has ended ("unended": each finish_reason is null), or some has.
 *
 * Recognised by the name between bare quotes, which cannot stand inside a JSON string, where the quotes would be escaped.
 */
export function scanFinishReasons(bytes: Buffer, start: number, end: number): FinishReasons {
  // What an event lacks would be searched for in all events behind it, once for each.
  const json = bytes.length - end > BEHIND_MAX ? bytes.subarray(0, end) : bytes;
  let at = json.indexOf(NAME, start);
  if (at < 0 || at >= end) return "no-choice";
  let ends: FinishReasons = "unended";
  while (at >= 0 && at < end) {
    let value = at + NAME.length;
    while (json[value] === COLON || json[value]! <= SPACE) value++;
    if (matchesAt(json, value, ABORT)) return "abort";
    if (json[value] === QUOTE) ends = "ended";
    at = end - value > BYTES_LOOPED_MAX ? json.indexOf(NAME, value) : nextName(json, value, end);
  }
  return ends;
}

/** Why an answer of Anthropic's messages ended. vLLM has no word for one that it aborted, and writes null. */
export function isStopReason(value: unknown): boolean {
  return typeof value === "string" && value !== "abort";
}

/** The status of an answer of OpenAI's responses that was aborted, where the engine states that at all. */
export const CANCELLED = "cancelled";
/** The same of one that is whole, or was aborted where the engine does not state that. */
export const COMPLETED = "completed";

/** In the few bytes behind the last choice a search costs less than the call of one. */
function nextName(json: Buffer, from: number, end: number): number {
  for (let at = from; at <= end - NAME.length; at++) if (json[at] === QUOTE && matchesAt(json, at, NAME)) return at;
  return -1;
}

/** The bytes at `at` are those of `expected`. */
export function matchesAt(bytes: Buffer, at: number, expected: Buffer): boolean {
  for (let i = 0; i < expected.length; i++) if (bytes[at + i] !== expected[i]) return false;
  return true;
}

/** Bytes behind the end that cost less to search than to leave out. */
const BEHIND_MAX = 4_096;
const BYTES_LOOPED_MAX = 64;
const NAME = Buffer.from('"finish_reason"');
const ABORT = Buffer.from('"abort"');
const QUOTE = 0x22;

/**
 * Where the value of a name begins in JSON bytes, from `start` on and before `end`; -1 where the name is not there. `name`
 * stands with its quotes: between bare quotes it cannot be inside a JSON string, where they would be escaped.
 */
export function valueAt(json: Buffer, name: Buffer, start: number, end: number): number {
  // What an event lacks would be searched for in all events behind it, once for each.
  const bytes = json.length - end > BEHIND_MAX ? json.subarray(0, end) : json;
  for (let found = bytes.indexOf(name, start); found >= 0 && found < end;) {
    const colon = spaceEnd(bytes, found + name.length);
    if (bytes[colon] === COLON) return spaceEnd(bytes, colon + 1);
    found = bytes.indexOf(name, colon);
  }
  return -1;
}

/** Bytes behind the end that cost less to search than to leave out. */

function spaceEnd(json: Buffer, from: number): number {
  let at = from;
  while (json[at]! <= SPACE) at++;
  return at;
}

/**
 * The text under a name of the outermost object of a JSON text; undefined where it is not there or no string, or longer than
 * any that is a word or a name of an API. Objects within, such as what a tool is called with, may have any names.
 */
export function outerText(json: Buffer, name: string): string | undefined {
  const key = Buffer.from(`"${name}"`);
  let depth = 0;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at]!;
    if (byte === QUOTE) {
      const end = stringEnd(json, at);
      const isKey = depth === 1 && end - at === key.length && matchesAt(json, at, key);
      const value = isKey ? valueBehind(json, end) : -1;
      if (value >= 0) return wordAt(json, value);
      at = end - 1;
    } else if ((byte | CASE) === BRACE) depth++;
    else if ((byte | CASE) === BRACE_CLOSED) depth--;
  }
  return undefined;
}

const BACKSLASH = 0x5c;
const BRACE_CLOSED = 0x7d;
/** What a bracket lacks of a brace. */
const CASE = 0x20;
const WORD_BYTES_MAX = 256;

/** Behind the closing quote of the string that opens at `from`. */
function stringEnd(json: Buffer, from: number): number {
  let at = from + 1;
  while (at < json.length && json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1;
  return at + 1;
}

/** Where the value of a key begins that ends at `from`; -1 where it is no key. */
function valueBehind(json: Buffer, from: number): number {
  let at = from;
  while (json[at]! <= SPACE) at++;
  if (json[at] !== COLON) return -1;
  at++;
  while (json[at]! <= SPACE) at++;
  return at;
}

function wordAt(json: Buffer, from: number): string | undefined {
  const end = json[from] === QUOTE ? stringEnd(json, from) : from;
  return end === from || end - from > WORD_BYTES_MAX ? undefined : json.toString("utf8", from + 1, end - 1);
}

/**
 * The same JSON with another count of cached tokens in its last usage object; as it is where that has none. An engine that
 * fetched a prompt's blocks calls all of them cached, whoever computed them and when.
 */
export function ownCachedTokens(json: Buffer, cachedTokens: number): Buffer {
  const usage = json.lastIndexOf(USAGE_KEY);
  const name = usage < 0 ? -1 : json.indexOf(CACHED, usage);
  if (name < 0) return json;
  let from = name + CACHED.length;
  while (json[from]! <= SPACE) from++;
  let to = from;
  while (json[to]! >= ZERO && json[to]! <= NINE) to++;
  if (to === from) return json;
  return Buffer.concat([json.subarray(0, from), Buffer.from(String(cachedTokens)), json.subarray(to)]);
}

/** Bare quotes cannot stand inside a JSON string. */
const USAGE_KEY = Buffer.from('"usage":');
const CACHED = Buffer.from('"cached_tokens":');
const NINE = 0x39;
