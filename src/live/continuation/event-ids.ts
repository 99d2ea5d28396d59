import { matchesAt } from "../answer/finish-reason.ts";

/** Where an event has its tokens. */
export interface EventTokens {
  /** The bracket that opens the list of their ids. */
  readonly bracket: number;
  readonly hasText: boolean;
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

const NULL = Buffer.from("null");
const BRACKET = 0x5b;
const BRACKET_CLOSED = 0x5d;
const BRACE = 0x7d;
const COMMA = 0x2c;
const SPACE = 0x20;
const ZERO = 0x30;

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= ZERO + 9;
}
