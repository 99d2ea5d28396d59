import type { Dialect } from "../http/route.ts";
import { type Fields, isFields } from "../base/fields.ts";
import { isBeyond } from "../base/json-scan.ts";
import { CANCELLED, COMPLETED, isStopReason, matchesAt, scanFinishReasons } from "./answer-json.ts";

/**
 * Cuts a stream of server-sent events into whole events and classifies each, over the bytes as they came, whatever
 * the chunks' bounds.
 *
 * Push a chunk, then call `next` until it is false: event by event, `kind` names what lies in
 * `bytes[start..end)`. Bytes of an event that is not whole yet stay inside until the next chunk; `consumed` is where
 * they begin.
 */
export class SseScanner {
  /** What was pushed last, behind the unfinished event of before. */
  bytes: Buffer = EMPTY;
  start = 0;
  end = 0;
  kind: SseKind = "meta";
  /** End of the last whole event in `bytes`. */
  consumed = 0;
  /** Events that were longer than the limit and passed unread. */
  uninspected = 0;

  readonly #dialect: Dialect;
  readonly #eventBytesMax: number;
  /** Where to go on looking for a line's end. */
  #looked = 0;
  #sawToken = false;
  /** A carriage return was seen: lines may end with it, alone or before a line feed. */
  #carriage = false;
  /** Inside an event that is too long: its bytes pass until its end. */
  #skipping = false;
  /** Memory of our own in which an unfinished event grows, and how far it is filled; what lies in it never changes. */
  #store: Buffer = EMPTY;
  #filled = 0;

  constructor(dialect: Dialect, eventBytesMax: number) {
    this.#dialect = dialect;
    this.#eventBytesMax = eventBytesMax;
  }

  push(chunk: Buffer): void {
    const rest = this.bytes.length - this.consumed;
    if (rest === 0) {
      this.bytes = chunk;
      this.#looked = 0;
    } else {
      this.#looked -= this.consumed;
      this.bytes = this.#joined(rest, chunk);
    }
    this.consumed = 0;
    this.#carriage ||= chunk.includes(CR);
  }

  /** The last `rest` bytes with a chunk behind them. In place where there is room, or each chunk would copy all before. */
  #joined(rest: number, chunk: Buffer): Buffer {
    const length = rest + chunk.length;
    const goesOn = this.bytes.buffer === this.#store.buffer;
    if (!goesOn || this.#filled + chunk.length > this.#store.length) {
      // Most events lie in two reads at most.
      this.#store = Buffer.allocUnsafeSlow(goesOn ? STORE_GROWTH * length : length);
      this.#store.set(this.bytes.subarray(this.consumed));
      this.#filled = rest;
    }
    this.#store.set(chunk, this.#filled);
    this.#filled += chunk.length;
    return this.#store.subarray(this.#filled - length, this.#filled);
  }

  next(): boolean {
    const start = this.consumed;
    const end = this.#eventEnd();
    if (end < 0) return this.#skipLong();
    this.start = start;
    this.end = end;
    this.consumed = end;
    this.#looked = end;
    if (this.#skipping) {
      this.#skipping = false;
      this.kind = "meta";
    } else if (this.#sawToken) {
      this.kind = classifyLater(this.#dialect, this.bytes, start, end);
    } else {
      this.kind = classifyFirst(this.#dialect, this.bytes, start, end);
      this.#sawToken = this.kind === "token";
    }
    return true;
  }

  /** An event has begun that is not whole. */
  get isInside(): boolean {
    return this.consumed < this.bytes.length || this.#skipping;
  }

  /** Bytes of an event that never became whole. */
  get rest(): Buffer {
    return this.bytes.subarray(this.consumed);
  }

  /** After an empty line; -1 if there is none. */
  #eventEnd(): number {
    return this.#carriage ? this.#endOfAny() : this.#endOfFeeds();
  }

  /** Where all lines end with a line feed, as engines send them. */
  #endOfFeeds(): number {
    const { bytes } = this;
    for (;;) {
      const feed = bytes.indexOf(LF, this.#looked);
      const next = bytes[feed + 1];
      if (feed >= 0 && next === LF) return feed + 2;
      if (feed < 0 || next === undefined) {
        this.#looked = feed < 0 ? bytes.length : feed;
        return -1;
      }
      this.#looked = feed + 1;
    }
  }

  /** Where they end with a line feed, a carriage return, or both (WHATWG HTML, server-sent events). */
  #endOfAny(): number {
    const { bytes } = this;
    for (let at = this.#looked; at < bytes.length; at++) {
      if (bytes[at] !== LF && bytes[at] !== CR) continue;
      this.#looked = at;
      const next = afterLineEnd(bytes, at);
      if (bytes[next] === LF || (bytes[next] === CR && next + 1 < bytes.length)) return afterLineEnd(bytes, next);
      if (next === bytes.length) return -1;
      // The line feed of this one may be on its way. But where lines end with carriage returns alone there is none, and
      // the event would wait for the next one.
      if (bytes[next] === CR) return bytes[at] === CR && next === at + 1 ? next + 1 : -1;
      at = next - 1;
    }
    this.#looked = bytes.length;
    return -1;
  }

  /** Lets an event that grew beyond the limit pass in pieces; the first of them counts as a token. */
  #skipLong(): boolean {
    const { length } = this.bytes;
    if (length - this.consumed <= this.#eventBytesMax && !this.#skipping) return false;
    if (length - this.consumed <= TAIL_KEPT) return false;
    if (!this.#skipping) this.uninspected++;
    this.kind = this.#skipping ? "meta" : "token";
    this.#skipping = true;
    this.#sawToken = true;
    this.start = this.consumed;
    this.end = length - TAIL_KEPT;
    this.consumed = this.end;
    this.#looked = this.end;
    return true;
  }
}

/** After the line end that begins at `at`. */
function afterLineEnd(bytes: Buffer, at: number): number {
  return bytes[at] === CR && bytes[at + 1] === LF ? at + 2 : at + 1;
}

const STORE_GROWTH = 2;
const LF = 10;
const CR = 13;
/** Enough to recognise the empty line that ends an event across chunks. */
const TAIL_KEPT = 2;
const EMPTY = Buffer.alloc(0);

/**
 * What one server-sent event means for the request.
 * - token: output of the model
 * - end: a typed event that states why the model stopped, of a dialect in which an answer may have no text
 * - meta: anything without output, a role or a closing chunk
 * - usage: OpenAI's chunk without choices that only counts
 * - done: the engine declares the answer complete
 * - error: the engine reports a failure in the stream
 * - abort: the answer ended without the model's doing, as a terminating vLLM ends its streams: finish_reason "abort", a
 *   stop_reason of null, a response that is "cancelled"
 * - comment: no data, as a keep-alive
 * - garbage: data that is not JSON
 */
export type SseKind = "token" | "end" | "meta" | "usage" | "done" | "error" | "abort" | "comment" | "garbage";

/**
 * Classifies by reading the whole event. Used until the first token, which must be distinguished from chunks without
 * text.
 */
function classifyFirst(dialect: Dialect, bytes: Buffer, start: number, end: number): SseKind {
  const data = dataStart(bytes, start, end);
  if (data < 0) return "comment";
  if (isDone(bytes, data)) return "done";
  const event = parseData(bytes, data, end);
  if (event === undefined) return "garbage";
  switch (dialect) {
    case "chat":
    case "completions":
    case "other":
      return chunkKind(event);
    case "messages":
    case "responses":
      return typedKind(event);
  }
}

/**
 * Classifies by a few bytes, once a token was seen. A chunk of OpenAI's is a token if it has a choice, which is seen by
 * the choice's finish_reason; no JSON string can hold that name between bare quotes.
 */
function classifyLater(dialect: Dialect, bytes: Buffer, start: number, end: number): SseKind {
  if (dialect === "messages" || dialect === "responses") return classifyFirst(dialect, bytes, start, end);
  const data = dataStart(bytes, start, end);
  if (data < 0) return "comment";
  if (bytes[data] === BRACKET) return isDone(bytes, data) ? "done" : "garbage";
  const finish = scanFinishReasons(bytes, data, end);
  if (finish === "abort") return "abort";
  if (finish !== "no-choice") return "token";
  const event = parseData(bytes, data, end);
  return event === undefined ? "garbage" : chunkKind(event);
}

/** Index of the first data line's payload; -1 where there is none. */
function dataStart(bytes: Buffer, start: number, end: number): number {
  let line = start;
  while (line < end) {
    if (matchesAt(bytes, line, DATA)) {
      return bytes[line + 5] === SPACE ? line + 6 : line + 5;
    }
    while (line < end && bytes[line] !== LF && bytes[line] !== CR) line++;
    line++;
  }
  return -1;
}

function parseData(bytes: Buffer, data: number, end: number): Fields | undefined {
  if (end - data > UNSCANNED_BYTES_MAX && isBeyond(bytes.subarray(data, end), EVENT_BOUNDS)) return undefined;
  try {
    const lines = withoutPromptIds(bytes.toString("utf8", data, end));
    const lineEnd = lines.search(LINE_END);
    const line = lineEnd < 0 ? lines : lines.slice(0, lineEnd);
    // No object, and each exception takes 4 us: a read brings 7,000 lines of a few bytes.
    const visible = line.trim();
    if (!visible.startsWith("{") || !visible.endsWith("}")) return undefined;
    const value: unknown = JSON.parse(line);
    return isFields(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Shorter events take a millisecond or two, whatever they hold. */
const UNSCANNED_BYTES_MAX = 32_768;
/** No engine's event of a mebibyte has as much: alternatives of 17,000 tokens have 52,000 keys. */
const EVENT_BOUNDS = {
  jsonDepthMax: 128,
  jsonKeysMax: 65_536,
  jsonFieldsMax: 256,
  jsonItemsMax: 65_536,
  jsonValuesMax: 524_288,
};

/** A prompt's ids, thousands of them, are of no meaning here, and cost more to parse than all the rest. */
function withoutPromptIds(json: string): string {
  if (json.length < IDS_LENGTH_MIN) return json;
  const at = json.indexOf(PROMPT_IDS);
  const closed = at < 0 ? -1 : json.indexOf("]", at);
  return closed < 0 ? json : json.slice(0, at + PROMPT_IDS.length) + json.slice(closed);
}

/** Shorter lists are parsed as fast as they are cut out. */
const IDS_LENGTH_MIN = 2_048;
/** Between bare quotes, with a list behind it: it cannot stand inside a JSON string. */
const PROMPT_IDS = '"prompt_token_ids":[';

/** The JSON object of an event, for reading what the last one counted; undefined where it holds none. */
export function eventData(event: Buffer): Fields | undefined {
  const data = dataStart(event, 0, event.length);
  return data < 0 ? undefined : parseData(event, data, event.length);
}

/**
 * Whether an event ends a block of Anthropic's messages, or a part or an item of a response: an engine that aborts an answer
 * ends its last one first, so that it is no end before the event behind it has come.
 */
export function endsBlock(dialect: Dialect, kind: SseKind, bytes: Buffer, start: number, end: number): boolean {
  if (dialect !== "messages" && dialect !== "responses") return false;
  const event = bytes.subarray(start, end);
  if (dialect === "messages") return BLOCK_ENDS.some((name) => event.includes(name));
  if ((kind !== "meta" && kind !== "end") || !event.includes(DONE_TYPE)) return false;
  const type = eventData(event)?.["type"];
  return typeof type === "string" && type.endsWith(".done");
}

/**
 * Whether an event that ends an answer leaves open whether the engine aborted it. vLLM states an abort for models of OpenAI's
 * harmony format alone, as `cancelled`; of all others such a response is `completed`.
 */
export function isUnprovenEnd(dialect: Dialect, kind: SseKind, event: () => Fields | undefined): boolean {
  if (dialect !== "responses" || kind !== "done") return false;
  const response = event()?.["response"];
  return isFields(response) && response["status"] === COMPLETED;
}

const DONE_TYPE = Buffer.from('.done"');
/** No JSON string can hold these between bare quotes. */
const BLOCK_ENDS = [Buffer.from('"content_block_stop"'), Buffer.from('"signature_delta"')];

/** Kinds of events with which a broken answer may end, or that come anywhere. */
export function mayEndBroken(kind: SseKind): boolean {
  return kind === "abort" || kind === "error" || kind === "garbage" || kind === "comment";
}

/** The id of a response, of the event that it begins with. */
export function responseIdOf(event: Fields | undefined): string | undefined {
  const response = event?.["response"];
  const id = isFields(response) ? response["id"] : undefined;
  return typeof id === "string" ? id : undefined;
}

/** A chunk of OpenAI's chat or completions. */
function chunkKind(event: Fields): SseKind {
  if (isFields(event["error"]) || event["object"] === "error") return "error";
  const choices = event["choices"];
  if (!Array.isArray(choices)) return "meta";
  if (choices.length === 0) return isFields(event["usage"]) ? "usage" : "meta";
  let kind: SseKind = "meta";
  for (const choice of choices) {
    if (!isFields(choice)) continue;
    if (choice["finish_reason"] === "abort") return "abort";
    if (hasOutput(choice) || (isFields(choice["delta"]) && hasOutput(choice["delta"]))) kind = "token";
    else if (typeof choice["finish_reason"] === "string") kind = "token";
  }
  return kind;
}

/** Names under which engines put what the model wrote. */
const OUTPUT_FIELDS = [
  "content",
  "text",
  "reasoning",
  "reasoning_content",
  "tool_calls",
  "refusal",
  "token_ids",
  "audio",
];

function hasOutput(part: Fields): boolean {
  for (const name of OUTPUT_FIELDS) {
    const value = part[name];
    if (typeof value === "string" || Array.isArray(value)) {
      if (value.length > 0) return true;
    } else if (isFields(value)) return true;
  }
  return false;
}

/** An event of Anthropic's messages or OpenAI's responses, which say themselves what they are. */
function typedKind(event: Fields): SseKind {
  const { type, delta, response } = event;
  if (typeof type !== "string") return isFields(event["error"]) ? "error" : "meta";
  if (type === "error" || type === "response.failed") return "error";
  if (type === "message_stop" || type === "response.completed" || type === "response.incomplete")
    return isFields(response) && response["status"] === CANCELLED ? "abort" : "done";
  if (type === "message_delta" && isFields(delta) && "stop_reason" in delta)
    return isStopReason(delta["stop_reason"]) ? "end" : "abort";
  // A finished item, such as a call of a tool, is output also where its parts were not streamed.
  if (type === "response.output_item.done") return "end";
  return type === "content_block_delta" || type.endsWith(".delta") ? "token" : "meta";
}

const LINE_END = /[\r\n]/;
const SPACE = 0x20;
const BRACKET = 0x5b;
const DATA = Buffer.from("data:");
const DONE = Buffer.from("[DONE]");

function isDone(bytes: Buffer, data: number): boolean {
  return matchesAt(bytes, data, DONE);
}
