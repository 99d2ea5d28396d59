import type { Dialect } from "../http/route.ts";
import { type SseKind, classifyFirst, classifyLater } from "./sse-event.ts";

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
    const inPlace = this.bytes.buffer === this.#store.buffer && this.#filled + chunk.length <= this.#store.length;
    if (!inPlace) {
      this.#store = Buffer.allocUnsafeSlow(STORE_GROWTH * length);
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
