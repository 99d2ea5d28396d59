import type { Answer, AnswerCounts, AnswerHead, Delivery } from "../answer/answer.ts";
import { findUsage, type Usage } from "../answer/answer-json.ts";
import { SseScanner } from "../answer/sse-scanner.ts";
import { promisesEnd, TokenForm } from "../answer/stream-answer.ts";
import { WholeChunk } from "../http/chunk-framing.ts";
import { headerOf, isMediaType } from "../http/headers.ts";

/**
 * Carries an answer of another router through as it comes, whatever it is, and reads it beside that: the first token,
 * progress, counts, and whether it is whole. What cannot be read passes unread.
 */
export class TappedAnswer implements Answer {
  readonly carriage = "through";
  readonly #delivery: Delivery;
  readonly #head: AnswerHead;
  readonly #failed: (error: unknown) => void;
  #first: Buffer | undefined;
  #stream: ReadStream | undefined;
  #whole: Buffer[] | undefined;
  #wholeBytes = 0;
  #usage: Usage | undefined;

  constructor(delivery: Delivery, head: AnswerHead, failed: (error: unknown) => void) {
    this.#delivery = delivery;
    this.#head = head;
    this.#failed = failed;
    if (headerOf(head.headers, "content-encoding") !== "" || head.status !== OK) return;
    const type = headerOf(head.headers, "content-type");
    if (isMediaType(type, "text/event-stream")) this.#stream = new ReadStream(delivery);
    else if (isMediaType(type, "application/json")) this.#whole = [];
  }

  data(chunk: Buffer): void {
    if (this.#delivery.state === "passing") this.#delivery.write(chunk);
    else {
      this.#first = chunk;
      this.#delivery.firstBytes();
    }
    this.#reads(() => {
      if (this.#stream !== undefined) this.#stream.read(chunk);
      else if (this.#whole !== undefined) this.#keep(this.#whole, chunk);
    });
  }

  chunks(bytes: Buffer, to: number): number {
    return this.#stream?.chunks(bytes, to) ?? 0;
  }

  ended(): void {
    this.#reads(() => {
      if (this.#stream !== undefined) this.#usage = this.#stream.usage();
      else if (this.#whole !== undefined) {
        const body = Buffer.concat(this.#whole);
        this.#usage = findUsage(body);
        this.#delivery.answerReader?.whole(body);
      }
    });
    const isWell = this.#head.status < ERROR_MIN && this.#stream?.isWhole !== false;
    this.#delivery.completed(isWell ? "ok" : "refused", false);
  }

  showHead(): void {
    const { writer } = this.#delivery;
    writer.head(this.#head.status, this.#delivery.headers(this.#head, true));
    if (headerOf(this.#head.headers, "content-length") === "") writer.flush();
  }

  writeHeld(): void {
    const first = this.#first;
    this.#first = undefined;
    if (first === undefined) return this.showHead();
    const { writer } = this.#delivery;
    if (headerOf(this.#head.headers, "content-length") === "") {
      writer.headAndFirst(this.#head.status, this.#delivery.headers(this.#head, true), first);
      return;
    }
    this.showHead();
    this.#delivery.write(first);
  }

  counts(): AnswerCounts {
    if (this.#usage === undefined && this.#stream !== undefined)
      this.#reads(() => (this.#usage = this.#stream?.usage()));
    return { usage: this.#usage, tokensSeen: this.#stream?.tokens };
  }

  #keep(whole: Buffer[], chunk: Buffer): void {
    this.#wholeBytes += chunk.length;
    if (this.#wholeBytes <= this.#delivery.limits.answerBytesInspected) whole.push(chunk);
    else {
      this.#delivery.counters.uninspected++;
      this.#whole = undefined;
    }
  }

  /** What fails at reading is nothing to the client. */
  #reads(read: () => void): void {
    try {
      read();
    } catch (error) {
      this.#stream = undefined;
      this.#whole = undefined;
      this.#failed(error);
    }
  }
}

const OK = 200;
const ERROR_MIN = 400;
/** Chunks are looked at one after another. */
const CHUNK = new WholeChunk();

/** Events of a stream, read as they pass. */
class ReadStream {
  readonly #delivery: Delivery;
  readonly #scanner: SseScanner;
  readonly #form = new TokenForm();
  tokens = 0;
  #isMarked = false;
  #hasFailed = false;
  /** The last event that may hold counts, as a place in bytes that were scanned. */
  #last: { readonly bytes: Buffer; readonly start: number; readonly end: number } | undefined;

  constructor(delivery: Delivery) {
    this.#delivery = delivery;
    this.#scanner = new SseScanner(delivery.dialect, delivery.limits.eventBytesInspected);
  }

  /** By its mark, where such streams promise one. */
  get isWhole(): boolean {
    return !this.#hasFailed && (this.#isMarked || !promisesEnd(this.#delivery.dialect));
  }

  read(chunk: Buffer): void {
    const scanner = this.#scanner;
    const delivery = this.#delivery;
    scanner.push(chunk);
    while (scanner.next()) {
      const { kind, bytes, start, end } = scanner;
      switch (kind) {
        case "token":
          this.#last = { bytes, start, end };
          this.#form.learn(bytes, start, end);
          delivery.answerReader?.event(bytes, start, end);
          if (this.tokens++ === 0) delivery.firstToken();
          else delivery.progress(this.tokens);
          break;
        case "usage":
        case "end":
        case "meta":
          this.#last = { bytes, start, end };
          break;
        case "done":
          this.#isMarked = true;
          if (delivery.dialect === "responses") this.#last = { bytes, start, end };
          break;
        case "error":
        case "abort":
          this.#hasFailed = true;
          break;
        case "garbage":
        case "comment":
      }
    }
  }

  /** Events that lie one in each chunk and differ from one that was read in their text and id alone leave as they came. */
  chunks(bytes: Buffer, to: number): number {
    const delivery = this.#delivery;
    if (this.#scanner.isInside || !delivery.takesChunks) return 0;
    let at = 0;
    while (at < to && CHUNK.at(bytes, at, to) && this.#form.matches(bytes, CHUNK.start, CHUNK.end)) {
      delivery.progress(++this.tokens);
      at = CHUNK.next;
    }
    if (at === 0) return 0;
    this.#last = undefined;
    delivery.writeChunks(bytes, at);
    return at;
  }

  usage(): Usage | undefined {
    const last = this.#last;
    this.#delivery.counters.uninspected += this.#scanner.uninspected;
    this.#scanner.uninspected = 0;
    return last && findUsage(last.bytes, last.start, last.end);
  }
}
