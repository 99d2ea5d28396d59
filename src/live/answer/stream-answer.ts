import { type Fields, isFields } from "../base/fields.ts";
import type { Answer, AnswerCounts, AnswerHead, Delivery, KeptAnswer } from "./answer.ts";
import { faultOfEvent } from "./faults.ts";
import { findUsage, matchesAt, ownCachedTokens, scanFinishReasons } from "./answer-json.ts";
import type { Dialect } from "../http/route.ts";
import { endsBlock, eventData, isUnprovenEnd, mayEndBroken, responseIdOf, SseScanner } from "./sse-scanner.ts";
import { WholeChunk } from "../http/chunk-framing.ts";

/**
 * Carries a stream of server-sent events to the client, reading each.
 *
 * Nothing goes out before the first token: an engine sends its response head at once and a role chunk with or before the
 * first token, and until a token is there another endpoint may still serve the request with a clean status. The price is
 * that the client does not see the head while the prompt is computed; `holdMillis` bounds that where a proxy in between
 * wants to see it sooner.
 *
 * A stream that is cut reaches the client with an error event at its end and never with the mark of completion, so that
 * it cannot be taken for a whole answer.
 */
export class StreamAnswer implements Answer {
  readonly carriage = "stream";
  readonly #delivery: Delivery;
  readonly #head: AnswerHead;
  readonly #scanner: SseScanner;
  readonly #form = new TokenForm();
  readonly #held: Buffer[] = [];
  #heldBytes = 0;
  #tokens = 0;
  /** What the engine reported of the whole answer so far: why the model stopped, or that it turns the request down. */
  #reported: "nothing" | "stop" | "refusal" = "nothing";
  /** The last event that may hold a count, as a place in bytes that were scanned. */
  #lastBytes: Buffer | undefined;
  #lastStart = 0;
  #lastEnd = 0;
  #responseId: string | undefined;
  /** Events that end a block of messages or of a response: one that is aborted has its last block ended first. */
  readonly #blockEnds: Buffer[] = [];
  /** The event that ends it, while the engine is asked whether it is whole; and whether its message is over. */
  #end: Buffer | undefined;
  #isOver = false;

  constructor(delivery: Delivery, head: AnswerHead) {
    this.#delivery = delivery;
    this.#head = head;
    this.#scanner = new SseScanner(delivery.dialect, delivery.limits.eventBytesInspected);
  }

  data(chunk: Buffer): void {
    this.#scanner.push(chunk);
    const from = this.#scan();
    if (from >= 0) this.#pass(this.#scanner.bytes, from, this.#scanner.consumed);
  }

  /**
   * Events that lie one in each chunk and differ from one that was read in their text and their id alone leave as they
   * came, in one write: with their chunks' bounds, and without an object being made for them.
   */
  chunks(bytes: Buffer, to: number): number {
    const delivery = this.#delivery;
    if (this.#scanner.isInside || !delivery.takesChunks) return 0;
    const form = this.#form;
    const { keptTokens } = delivery;
    let at = 0;
    while (at < to && CHUNK.at(bytes, at, to) && form.matches(bytes, CHUNK.start, CHUNK.end)) {
      if (keptTokens !== undefined) {
        if (!form.hasId) break;
        keptTokens.readTokens(bytes, CHUNK.start, CHUNK.end, form);
      }
      delivery.progress(++this.#tokens);
      at = CHUNK.next;
    }
    if (at === 0) return 0;
    this.#lastBytes = undefined;
    delivery.writeChunks(bytes, at);
    return at;
  }

  ended(): void {
    if (this.#end !== undefined) {
      this.#isOver = true;
      return;
    }
    const rest = this.#scanner.rest;
    if (rest.length > 0) {
      this.#scanner.push(BLANK_LINE);
      if (this.#scan() < 0) return;
      // A torn event would stand in the way of what follows it.
      if (this.#scanner.kind !== "garbage" || !this.#delivery.continues) this.#pass(rest, 0, rest.length);
    }
    this.#delivery.completed(this.#outcome, promisesEnd(this.#delivery.dialect));
  }

  showHead(): void {
    const { writer } = this.#delivery;
    writer.head(this.#head.status, this.#delivery.headers(this.#head, false));
    writer.flush();
  }

  writeHeld(): void {
    const piece = this.#held.length === 1 ? this.#held[0]! : Buffer.concat(this.#held, this.#heldBytes);
    this.#held.length = 0;
    const { writer } = this.#delivery;
    if (writer.headSent) return this.#delivery.write(piece);
    writer.headAndFirst(this.#head.status, this.#delivery.headers(this.#head, false), this.#delivery.named(piece));
  }

  counts(): AnswerCounts {
    this.#delivery.counters.uninspected += this.#scanner.uninspected;
    const usage =
      this.#lastBytes === undefined ? undefined : findUsage(this.#lastBytes, this.#lastStart, this.#lastEnd);
    return { usage, tokensSeen: this.#tokens, responseId: this.#responseId };
  }

  get #outcome(): "ok" | "refused" {
    return this.#reported === "refusal" ? "refused" : "ok";
  }

  /** Reads the events that became whole. Returns where what may pass begins, or -1 when this answer is over. */
  #scan(): number {
    const scanner = this.#scanner;
    const delivery = this.#delivery;
    let from = 0;
    while (scanner.next()) {
      if (delivery.dialect === "messages" || delivery.dialect === "responses") {
        const held = this.#holdsEnd();
        if (held !== undefined) {
          this.#pass(scanner.bytes, from, scanner.start);
          from = scanner.end;
          held();
          continue;
        }
        if (!mayEndBroken(scanner.kind)) this.#passBlockEnds();
      }
      switch (scanner.kind) {
        case "token":
          this.#remember();
          this.#form.learn(scanner.bytes, scanner.start, scanner.end);
          delivery.answerReader?.event(scanner.bytes, scanner.start, scanner.end);
          from = this.#keep(from);
          this.#noteForRepeat();
          if (this.#tokens++ === 0) delivery.firstToken();
          else delivery.progress(this.#tokens);
          break;
        case "usage":
          this.#remember();
          if (delivery.keptTokens !== undefined) delivery.keptTokens.counted = true;
          from = this.#usage(from);
          break;
        case "end":
          if (this.#reported === "nothing") this.#reported = "stop";
          this.#remember();
          this.#noteForRepeat();
          break;
        case "meta":
          this.#remember();
          if (delivery.dialect === "responses") this.#responseId ??= responseIdOf(this.#event());
          from = this.#keep(from);
          this.#noteForRepeat();
          break;
        case "done":
          if (this.#isUnbegun()) return this.#stop(from, "abort");
          delivery.marked(this.#outcome);
          if (delivery.dialect === "responses") this.#remember();
          break;
        case "error":
          if (!this.#isRefusal()) return this.#stop(from, "error");
          this.#reported = "refusal";
          if (delivery.state === "held") delivery.holdFull();
          break;
        case "abort":
          return this.#stop(from, "abort");
        case "garbage":
          if (delivery.state !== "held" || !promisesEnd(delivery.dialect)) break;
          delivery.attemptFailed("garbage");
          return -1;
        case "comment":
          break;
      }
      if (delivery.state === "over") return -1;
    }
    return from;
  }

  /** The counts, which the client may not have asked for, or gets with another engine's cached tokens. */
  #usage(from: number): number {
    const { hidesUsage, cachedTokens } = this.#delivery;
    if (!hidesUsage && cachedTokens === undefined) return from;
    const { bytes, start, end } = this.#scanner;
    this.#pass(bytes, from, start);
    if (!hidesUsage && cachedTokens !== undefined) {
      const event = ownCachedTokens(bytes.subarray(start, end), cachedTokens);
      this.#pass(event, 0, event.length);
    }
    return end;
  }

  /** Keeps what is needed of an event; what the client did not ask for is left out. Returns where what may pass begins. */
  #keep(from: number): number {
    const { keptTokens, judge } = this.#delivery;
    if (keptTokens === undefined && judge === undefined) return from;
    const { bytes, start, end } = this.#scanner;
    const hidden = judge === undefined ? keptTokens?.read(bytes, start, end) : judge.readEvent(bytes, start, end);
    if (hidden === undefined) return from;
    this.#pass(bytes, from, hidden[0]);
    this.#pass(NULL, 0, NULL.length);
    return hidden[1];
  }

  #noteForRepeat(): void {
    const { keptEvents } = this.#delivery;
    if (keptEvents !== undefined) keptEvents.read(this.#scanner.bytes, this.#scanner.start, this.#scanner.end);
  }

  /** What is to become of an event that may not go out yet: it ends a block, or the answer in a way that proves nothing. */
  #holdsEnd(): (() => void) | undefined {
    const { kind, bytes, start, end } = this.#scanner;
    const { dialect } = this.#delivery;
    if (endsBlock(dialect, kind, bytes, start, end)) {
      if (kind === "end" && this.#reported === "nothing") this.#reported = "stop";
      const event = Buffer.from(bytes.subarray(start, end));
      return () => this.#blockEnds.push(event);
    }
    if (!isUnprovenEnd(dialect, kind, () => this.#event()) || this.#isUnbegun()) return undefined;
    const event = Buffer.from(bytes.subarray(start, end));
    return () => {
      this.#end = event;
      this.#delivery.proveEnd((isWhole) => this.#proved(event, isWhole));
    };
  }

  /** The engine was asked whether it still serves: what it ended is whole, or it is shutting down. */
  #proved(end: Buffer, isWhole: boolean): void {
    const delivery = this.#delivery;
    this.#end = undefined;
    if (!isWhole) return delivery.state === "passing" ? delivery.broke("draining") : delivery.attemptFailed("draining");
    this.#passBlockEnds();
    delivery.marked(this.#outcome);
    [this.#lastBytes, this.#lastStart, this.#lastEnd] = [end, 0, end.length];
    this.#pass(end, 0, end.length);
    if (this.#isOver) delivery.completed(this.#outcome, true);
  }

  /** What lies behind a held end of a block shows that the answer goes on, or is whole. */
  #passBlockEnds(): void {
    for (const event of this.#blockEnds.splice(0)) {
      this.#pass(event, 0, event.length);
      this.#delivery.keptEvents?.read(event, 0, event.length);
    }
  }

  /**
   * The engine calls complete what has no token and no end: it is shutting down. (An answer without a token is well where
   * it states why the model stopped; a choice's finish_reason counts as a token.) Anthropic's messages state it always.
   */
  #isUnbegun(): boolean {
    const { dialect, state } = this.#delivery;
    if (dialect === "messages") return this.#reported === "nothing";
    if (!promisesEnd(dialect) || this.#tokens > 0 || this.#reported !== "nothing" || state === "passing") return false;
    return dialect !== "responses" || !hasOutputItems(this.#event());
  }

  /** An error of the client's making, sent in the stream before anything else: no other endpoint would do better. */
  #isRefusal(): boolean {
    const code = this.#errorCode();
    return this.#tokens === 0 && code >= 400 && code < 500;
  }

  /**
   * The engine failed. While the client has nothing, another endpoint may serve it. Else it gets what came before; an
   * error of the engine's own goes with it, and the event of an abort is replaced by one, since a client takes any
   * finish_reason for an end.
   */
  #stop(from: number, kind: "abort" | "error"): -1 {
    const { bytes, start, end } = this.#scanner;
    const delivery = this.#delivery;
    if (delivery.state !== "passing") {
      if (kind === "abort") delivery.attemptFailed("draining");
      else {
        const kept = this.#keptError();
        delivery.attemptFailed(faultOfEvent(this.#errorCode(), kept.body), kept);
      }
      return -1;
    }
    this.#pass(bytes, from, kind === "abort" || delivery.continues ? start : end);
    if (kind === "abort") delivery.broke("draining");
    else if (delivery.continues) {
      const event = bytes.subarray(start, end);
      delivery.broke(faultOfEvent(this.#errorCode(), event), event);
    } else delivery.engineError();
    return -1;
  }

  /** The event at hand, read. */
  #event(): Fields | undefined {
    return eventData(this.#scanner.bytes.subarray(this.#scanner.start, this.#scanner.end));
  }

  #errorCode(): number {
    const event = this.#event();
    const error = (event?.["error"] ?? event) as { readonly code?: unknown } | null | undefined;
    return typeof error?.code === "number" ? error.code : 0;
  }

  /** The engine's error event as the error answer that it would have been before the stream began. */
  #keptError(): KeptAnswer {
    const event = this.#event();
    const code = this.#errorCode();
    return {
      status: code >= 500 && code < 600 ? code : 502,
      headers: { "content-type": "application/json" },
      body: Buffer.from(JSON.stringify(event)),
    };
  }

  /** While bytes pass, each piece takes the first line alone: no event and no object is made for it. */
  #pass(bytes: Buffer, from: number, to: number): void {
    const piece = from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to);
    const delivery = this.#delivery;
    if (delivery.state === "passing") return delivery.write(piece);
    if (piece.length > 0) this.#held.push(piece);
    this.#heldBytes += piece.length;
    if (delivery.state === "held" && this.#heldBytes > delivery.limits.holdBytesMax) delivery.holdFull();
    if (delivery.state === "due" && this.#heldBytes > 0) delivery.firstBytes();
  }

  #remember(): void {
    this.#lastBytes = this.#scanner.bytes;
    this.#lastStart = this.#scanner.start;
    this.#lastEnd = this.#scanner.end;
  }
}

/** An engine may give its answer whole in the last event of OpenAI's responses. */
function hasOutputItems(event: Fields | undefined): boolean {
  const response = event?.["response"];
  const output = isFields(response) ? response["output"] : undefined;
  return Array.isArray(output) && output.length > 0;
}

/** Chunks are looked at one after another. */
const CHUNK = new WholeChunk();
const BLANK_LINE = Buffer.from("\n\n");
const NULL = Buffer.from("null");

/** These streams end with a mark of completion, so that its absence means a cut. */
export function promisesEnd(dialect: Dialect): boolean {
  return dialect !== "other";
}

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
