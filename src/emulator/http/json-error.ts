/** Where and why a text is not JSON, in the words of Python's decoder. */
export interface JsonFault {
  readonly at: number;
  readonly reason: string;
}

class Fault extends Error {
  readonly at: number;
  constructor(reason: string, at: number) {
    super(reason);
    this.at = at;
  }
}

/**
 * Finds the first error of a text that `JSON.parse` refused. Python's decoder accepts NaN and Infinity, which JSON does
 * not; they are reported as an unexpected value.
 */
export function findJsonFault(text: string): JsonFault {
  try {
    const end = skipSpace(text, readValue(text, skipSpace(text, 0), 0));
    return { at: end, reason: end < text.length ? "Extra data" : "Expecting value" };
  } catch (error) {
    if (error instanceof Fault) return { at: error.at, reason: error.message };
    throw error;
  }
}

const DEPTH_MAX = 500;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?/y;
const CONTROL_MAX = 0x1f;

function readValue(text: string, at: number, depth: number): number {
  if (depth > DEPTH_MAX) throw new Fault("Expecting value", at);
  const char = text[at];
  if (char === "{") return readObject(text, at + 1, depth);
  if (char === "[") return readArray(text, at + 1, depth);
  if (char === '"') return readString(text, at);
  for (const word of ["null", "true", "false"]) if (text.startsWith(word, at)) return at + word.length;
  NUMBER.lastIndex = at;
  const number = NUMBER.exec(text);
  if (number === null) throw new Fault("Expecting value", at);
  return at + number[0].length;
}

function readObject(text: string, start: number, depth: number): number {
  let at = skipSpace(text, start);
  if (text[at] === "}") return at + 1;
  for (;;) {
    if (text[at] !== '"') throw new Fault("Expecting property name enclosed in double quotes", at);
    at = skipSpace(text, readString(text, at));
    if (text[at] !== ":") throw new Fault("Expecting ':' delimiter", at);
    at = skipSpace(text, readValue(text, skipSpace(text, at + 1), depth + 1));
    if (text[at] === "}") return at + 1;
    if (text[at] !== ",") throw new Fault("Expecting ',' delimiter", at);
    at = skipSpace(text, at + 1);
  }
}

function readArray(text: string, start: number, depth: number): number {
  let at = skipSpace(text, start);
  if (text[at] === "]") return at + 1;
  for (;;) {
    at = skipSpace(text, readValue(text, at, depth + 1));
    if (text[at] === "]") return at + 1;
    if (text[at] !== ",") throw new Fault("Expecting ',' delimiter", at);
    at = skipSpace(text, at + 1);
  }
}

function readString(text: string, quote: number): number {
  for (let at = quote + 1; at < text.length; at++) {
    const char = text[at];
    if (char === '"') return at + 1;
    if (text.charCodeAt(at) <= CONTROL_MAX) throw new Fault("Invalid control character at", at);
    if (char !== "\\") continue;
    at++;
    const escape = text[at];
    if (escape === undefined) break;
    if (escape === "u") {
      if (!/^[0-9a-fA-F]{4}$/.test(text.slice(at + 1, at + 5))) throw new Fault("Invalid \\uXXXX escape", at);
      at += 4;
    } else if (!'"\\/bfnrt'.includes(escape)) {
      throw new Fault("Invalid \\escape", at - 1);
    }
  }
  throw new Fault("Unterminated string starting at", quote);
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && " \t\n\r".includes(text[at] ?? "x")) at++;
  return at;
}
