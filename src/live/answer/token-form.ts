import { matchesAt, scanFinishReasons } from "./answer-json.ts";

/**
 * Bytes that are compared with those of each streamed event, four at a time: a third of what it takes one by one. Native
 * code has to be called, which takes as long as comparing some hundred bytes.
 */
export class ByteRun {
  readonly #words: Int32Array;
  readonly #rest: Uint8Array;
  readonly length: number;

  constructor(bytes: Uint8Array) {
    this.length = bytes.length;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#words = Int32Array.from({ length: bytes.length >> 2 }, (_, i) => view.getInt32(4 * i, true));
    this.#rest = Uint8Array.from(bytes.subarray(4 * this.#words.length));
  }

  /** Whether the bytes at `at` are these. */
  isAt(bytes: DataView, at: number): boolean {
    if (at + this.length > bytes.byteLength) return false;
    const words = this.#words;
    let place = at;
    for (let i = 0; i < words.length; i++, place += 4) if (bytes.getInt32(place, true) !== words[i]) return false;
    const rest = this.#rest;
    for (let i = 0; i < rest.length; i++) if (bytes.getUint8(place + i) !== rest[i]) return false;
    return true;
  }
}

let last: Uint8Array = new Uint8Array(0);
let lastView = new DataView(last.buffer);

/** A view of the bytes; of the buffer that all reads go into, the same one each time. */
export function viewOf(bytes: Uint8Array): DataView {
  if (bytes !== last) {
    lastView = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    last = bytes;
  }
  return lastView;
}

/**
 * What the events of a stream have in common that each bring one more piece of text: all bytes but the text and the id of
 * its token. Learned from one event that was read, so that another which differs in these alone needs no reading: comparing
 * it takes 0.1 us, where finding its bounds, its kind and its ids takes 0.5.
 *
 * Of OpenAI's dialects. An engine whose events differ in more (a count, log-probabilities, the time) is never matched.
 */
export class TokenForm {
  /** From the event's beginning to behind the text's opening quote. */
  #before = NONE;
  /** From the text's closing quote to the id, or to the event's end where it has none. */
  #between = NONE;
  /** Behind the id. */
  #behind = NONE;
  #hasId = false;
  /** Events in a row that were not matched, though a form was known or could have been. */
  #misses = 0;

  /** Of the event that was matched last: the bracket before its id; -1 where it has none. */
  bracket = -1;
  hasText = false;

  /**
   * Learns from an event in bytes[start..end) that was read as one of output. Where events keep differing it is asked ever
   * more rarely: by the first, second, fourth, eighth of them.
   */
  learn(bytes: Buffer, start: number, end: number): void {
    const misses = ++this.#misses;
    if ((misses & (misses - 1)) !== 0) return;
    this.#before = NONE;
    const text = textAt(bytes, start, end);
    if (text < 0) return;
    const quote = closingQuote(bytes, text, end);
    if (quote < 0 || !isPlain(bytes, start, text, quote, end)) return;
    const ids = bytes.indexOf(IDS, quote);
    const bracket = ids < 0 || ids >= end ? -1 : ids + IDS.length - 1;
    const behind = bracket < 0 ? end : digitsEnd(bytes, bracket + 1);
    // Several ids, or none, in a list.
    if (bracket >= 0 && (behind === bracket + 1 || bytes[behind] !== BRACKET_CLOSED)) return;
    this.#hasId = bracket >= 0;
    this.#before = new ByteRun(bytes.subarray(start, text));
    this.#between = new ByteRun(bytes.subarray(quote, bracket < 0 ? end : bracket + 1));
    this.#behind = new ByteRun(bytes.subarray(behind, end));
  }

  get hasId(): boolean {
    return this.#hasId;
  }

  /** Whether bytes[start..end) are an event that differs from the one learned in its text and its id alone. */
  matches(bytes: Buffer, start: number, end: number): boolean {
    const before = this.#before;
    const text = start + before.length;
    if (before.length === 0 || text >= end) return false;
    const view = viewOf(bytes);
    if (!before.isAt(view, start)) return false;
    const quote = closingQuote(bytes, text, end);
    if (quote < 0 || !this.#between.isAt(view, quote)) return false;
    const id = quote + this.#between.length;
    const behind = this.#hasId ? digitsEnd(bytes, id) : id;
    if ((this.#hasId && behind === id) || behind + this.#behind.length !== end) return false;
    if (!this.#behind.isAt(view, behind)) return false;
    this.bracket = this.#hasId ? id - 1 : -1;
    this.hasText = quote > text;
    this.#misses = 0;
    return true;
  }
}

/** Behind the opening quote of the text of the event's first choice; -1 where it has none. */
function textAt(bytes: Buffer, start: number, end: number): number {
  for (const name of TEXT_NAMES) {
    const at = bytes.indexOf(name, start);
    if (at >= 0 && at < end) return at + name.length;
  }
  return -1;
}

/** The quote that ends a string which begins at `from`; -1 where it does not end, or holds what no JSON string does. */
function closingQuote(bytes: Buffer, from: number, end: number): number {
  for (let at = from; at < end; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) return at;
    if (byte < SPACE || (byte === BACKSLASH && bytes[++at]! < SPACE)) return -1;
  }
  return -1;
}

/**
 * One data line with an empty one behind it; a choice, none of which has ended; and nothing is counted: what that would be
 * read for lies in other events.
 */
function isPlain(bytes: Buffer, start: number, text: number, quote: number, end: number): boolean {
  if (!matchesAt(bytes, start, DATA) || bytes[end - 1] !== LF || bytes[end - 2] !== LF) return false;
  for (let at = start; at < text; at++) if (bytes[at]! < SPACE) return false;
  for (let at = quote; at < end - 2; at++) if (bytes[at]! < SPACE) return false;
  const usage = bytes.indexOf(USAGE, start);
  return (usage < 0 || usage >= end) && scanFinishReasons(bytes, start, end) === "unended";
}

function digitsEnd(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at]! >= ZERO && bytes[at]! <= ZERO + 9) at++;
  return at;
}

const NONE = new ByteRun(new Uint8Array(0));
/** With bare quotes before the colon, so that they cannot stand inside a string. */
const TEXT_NAMES = ['"delta":{"content":"', '"text":"'].map((name) => Buffer.from(name));
const DATA = Buffer.from("data: {");
const IDS = Buffer.from('"token_ids":[');
const USAGE = Buffer.from('"usage":{');
const LF = 10;
const SPACE = 0x20;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const ZERO = 0x30;
const BRACKET_CLOSED = 0x5d;
