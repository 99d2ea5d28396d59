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
