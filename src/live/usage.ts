/** What an engine said it read and wrote for one request. */
export interface Usage {
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
  const to = Math.min(end, from + USAGE_BYTES_MAX);
  return {
    promptTokens: count(json, PROMPT_TOKENS, from, to) ?? count(json, INPUT_TOKENS, from, to),
    cachedTokens: count(json, CACHED_TOKENS, from, to) ?? count(json, CACHE_READ, from, to),
    outputTokens: count(json, COMPLETION_TOKENS, from, to) ?? count(json, OUTPUT_TOKENS, from, to),
  };
}

const USAGE = Buffer.from('"usage"');
const PROMPT_TOKENS = Buffer.from('"prompt_tokens"');
const INPUT_TOKENS = Buffer.from('"input_tokens"');
const CACHED_TOKENS = Buffer.from('"cached_tokens"');
const CACHE_READ = Buffer.from('"cache_read_input_tokens"');
const COMPLETION_TOKENS = Buffer.from('"completion_tokens"');
const OUTPUT_TOKENS = Buffer.from('"output_tokens"');
const COLON = 0x3a;
const BRACE = 0x7b;
const ZERO = 0x30;
const SPACE = 0x20;
/** No engine's usage object comes near this. */
const USAGE_BYTES_MAX = 4_096;

/** Index of the brace that opens the last usage object; -1 if none. */
function lastObject(json: Buffer, start: number, end: number): number {
  let at = json.lastIndexOf(USAGE, end);
  while (at >= start) {
    const brace = valueAt(json, at + USAGE.length, end);
    if (brace >= 0 && json[brace] === BRACE) return brace;
    if (at === 0) return -1;
    at = json.lastIndexOf(USAGE, at - 1);
  }
  return -1;
}

/** Index of the value behind a name's closing quote; -1 where no colon follows, and the name was none. */
function valueAt(json: Buffer, afterName: number, end: number): number {
  let at = afterName;
  while (at < end && json[at]! <= SPACE) at++;
  if (json[at] !== COLON) return -1;
  at++;
  while (at < end && json[at]! <= SPACE) at++;
  return at < end ? at : -1;
}

/** The whole number under a name; undefined where the name or a number is not there. */
function count(json: Buffer, name: Buffer, from: number, to: number): number | undefined {
  const found = json.indexOf(name, from);
  if (found < 0 || found >= to) return undefined;
  let at = valueAt(json, found + name.length, to);
  if (at < 0 || !isDigit(json[at])) return undefined;
  let value = 0;
  for (; at < to && isDigit(json[at]); at++) value = 10 * value + json[at]! - ZERO;
  return value;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= ZERO + 9;
}
