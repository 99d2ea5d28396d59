/** The log-probabilities of one answer, or of one event of a stream. */
export interface LogprobsFound {
  /** Where their value lies, its last byte excluded; all bytes between are one JSON value. */
  readonly from: number;
  readonly to: number;
  readonly sum: number;
  readonly tokens: number;
}

/**
 * Finds `"logprobs": VALUE` of the first choice in the bytes of OpenAI's JSON, a chat's or a completion's, and adds up the
 * tokens' values. Undefined where there is none but null, or where it is no JSON.
 *
 * Recognised by the name between bare quotes, which cannot stand inside a JSON string, where the quotes would be escaped.
 */
export function readLogprobs(bytes: Buffer, start: number, end: number): LogprobsFound | undefined {
  const json = bytes.subarray(0, end);
  let from = json.indexOf(NAME, start);
  if (from < 0) return undefined;
  from += NAME.length;
  while (json[from] === COLON || json[from]! <= SPACE) from++;
  if (json[from] !== BRACE) return undefined;
  const to = endOfObject(json, from);
  if (to < 0) return undefined;
  try {
    const values = valuesOf(JSON.parse(json.toString("utf8", from, to)));
    let sum = 0;
    for (const value of values) sum += value;
    return { from, to, sum, tokens: values.length };
  } catch {
    return undefined;
  }
}

/** A chat lists its tokens, a completion their values; one that is null has none. */
function valuesOf(logprobs: unknown): readonly number[] {
  const { content, token_logprobs: listed } = logprobs as { readonly content?: unknown; token_logprobs?: unknown };
  const values: unknown[] = Array.isArray(listed)
    ? listed
    : Array.isArray(content)
      ? content.map((token) => (token as { readonly logprob?: unknown } | null)?.logprob)
      : [];
  return values.filter((value) => typeof value === "number");
}

/** Behind the brace that closes the one at `from`; -1 where none does. */
function endOfObject(json: Buffer, from: number): number {
  let depth = 0;
  for (let at = from; at < json.length; at++) {
    const byte = json[at];
    if (byte === QUOTE) {
      for (at++; at < json.length && json[at] !== QUOTE; at++) if (json[at] === BACKSLASH) at++;
    } else if (byte === BRACE) depth++;
    else if (byte === BRACE_CLOSED && --depth === 0) return at + 1;
  }
  return -1;
}

const NAME = Buffer.from('"logprobs"');
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BRACE = 0x7b;
const BRACE_CLOSED = 0x7d;
const COLON = 0x3a;
const SPACE = 0x20;
