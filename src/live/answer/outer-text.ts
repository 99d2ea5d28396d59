import { matchesAt } from "./finish-reason.ts";

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

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const SPACE = 0x20;
const BRACE = 0x7b;
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
