/** What an engine said it read and wrote for one request. */
export interface Usage {
  readonly promptTokens: number | undefined;
  readonly cachedTokens: number | undefined;
  readonly outputTokens: number | undefined;
}

/** Reads a usage object of OpenAI's chat and completions, of its responses, or of Anthropic's messages. */
export function readUsage(value: unknown): Usage | undefined {
  if (!isRecord(value)) return undefined;
  const details = value["prompt_tokens_details"] ?? value["input_tokens_details"];
  return {
    promptTokens: count(value["prompt_tokens"] ?? value["input_tokens"]),
    cachedTokens: count(isRecord(details) ? details["cached_tokens"] : value["cache_read_input_tokens"]),
    outputTokens: count(value["completion_tokens"] ?? value["output_tokens"]),
  };
}

/**
 * Finds the usage object in the bytes of an answer without reading the rest of it. The sequence quote-usage-quote-colon
 * cannot stand inside a JSON string, where the quotes would be escaped; the last one is the answer's own.
 */
export function findUsage(json: Buffer): Usage | undefined {
  for (let at = json.lastIndexOf(USAGE_KEY); at >= 0; at = at === 0 ? -1 : json.lastIndexOf(USAGE_KEY, at - 1)) {
    const open = skipTo(json, at + USAGE_KEY.length, COLON);
    const start = open < 0 ? -1 : skipTo(json, open + 1, BRACE_OPEN);
    const end = start < 0 ? -1 : objectEnd(json, start);
    if (end < 0) continue;
    try {
      return readUsage(JSON.parse(json.toString("utf8", start, end)));
    } catch {
      continue;
    }
  }
  return undefined;
}

const USAGE_KEY = Buffer.from('"usage"');
const COLON = 0x3a;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;
/** No engine's usage object comes near this. */
const USAGE_BYTES_MAX = 8_192;

/** Index of `byte` if only white space stands before it; else -1. */
function skipTo(json: Buffer, from: number, byte: number): number {
  let at = from;
  while (at < json.length && json[at]! <= 0x20) at++;
  return json[at] === byte ? at : -1;
}

/** End of the object that opens at `start`. A usage object holds numbers alone, so no brace can hide in a string. */
function objectEnd(json: Buffer, start: number): number {
  const limit = Math.min(json.length, start + USAGE_BYTES_MAX);
  let depth = 0;
  for (let at = start; at < limit; at++) {
    if (json[at] === BRACE_OPEN) depth++;
    else if (json[at] === BRACE_CLOSE && --depth === 0) return at + 1;
  }
  return -1;
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
