import type { Fault } from "#core/endpoint/fault.ts";

import { type Fields, isFields } from "../fields.ts";
import type { Answer, AnswerEnd, AnswerHead, Delivery, KeptAnswer } from "./answer.ts";
import { faultOfEvent } from "./fault-of-status.ts";
import { cutRefusal, errorEvent } from "./fault-words.ts";
import type { Dialect } from "../request/route.ts";
import { eventData } from "./sse-event.ts";
import { SseScanner } from "./sse-scanner.ts";
import { type Usage, findUsage } from "./usage.ts";

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
  readonly #delivery: Delivery;
  readonly #head: AnswerHead;
  readonly #scanner: SseScanner;
  #released = false;
  readonly #held: Buffer[] = [];
  #heldBytes = 0;
  #tokens = 0;
  /** The engine said why the model stopped. */
  #ended = false;
  #done = false;
  /** The engine turned the request down in the stream's first event. */
  #refused = false;
  /** The last event that may hold a count, as a place in bytes that were scanned. */
  #lastBytes: Buffer | undefined;
  #lastStart = 0;
  #lastEnd = 0;

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

  ended(): void {
    const rest = this.#scanner.rest;
    if (rest.length > 0) {
      this.#scanner.push(BLANK_LINE);
      if (this.#scan() < 0) return;
      this.#pass(rest, 0, rest.length);
    }
    if (!this.#done && promisesEnd(this.#delivery.dialect)) return this.broke("cut");
    this.#complete();
  }

  broke(fault: Fault): void {
    const { writer, counters, dialect } = this.#delivery;
    if (this.#done) return this.#complete();
    if (!writer.bodySent) return this.#delivery.attemptFailed(fault);
    counters.cuts++;
    writer.write(errorEvent(dialect, cutRefusal(fault)));
    this.#end(fault === "timeout" ? "timeout" : "failed", fault);
  }

  /** Shows the client that the answer has begun, while its first token is awaited. */
  showHead(): void {
    const { writer } = this.#delivery;
    writer.head(this.#head.status, this.#delivery.headers(this.#head, false));
    writer.flush();
  }

  #complete(): void {
    this.#released = true;
    this.#pass(EMPTY, 0, 0);
    this.#end(this.#refused ? "refused" : "ok");
  }

  #end(outcome: AnswerEnd["outcome"], fault?: Fault): void {
    this.#delivery.counters.uninspected += this.#scanner.uninspected;
    this.#delivery.writer.end();
    this.#delivery.finished({ outcome, usage: this.#usage(), tokensSeen: this.#tokens, ...(fault && { fault }) });
  }

  /** Reads the events that became whole. Returns where what may pass begins, or -1 when this answer is over. */
  #scan(): number {
    const scanner = this.#scanner;
    let from = 0;
    while (scanner.next()) {
      switch (scanner.kind) {
        case "token":
          this.#remember();
          this.#delivery.answerReader?.event(scanner.bytes, scanner.start, scanner.end);
          this.#token();
          break;
        case "usage":
          this.#remember();
          if (!this.#delivery.hidesUsage) break;
          this.#pass(scanner.bytes, from, scanner.start);
          from = scanner.end;
          break;
        case "end":
          this.#ended = true;
          this.#remember();
          break;
        case "meta":
          this.#remember();
          break;
        case "done":
          if (this.#isUnbegun()) {
            this.#delivery.attemptFailed("draining");
            return -1;
          }
          this.#done = true;
          this.#released = true;
          if (this.#delivery.dialect === "responses") this.#remember();
          break;
        case "error":
          if (!this.#isRefusal()) return this.#stop(from);
          this.#refused = true;
          this.#released = true;
          break;
        case "abort":
          return this.#stop(from);
        case "garbage":
          if (this.#released || !promisesEnd(this.#delivery.dialect)) break;
          this.#delivery.attemptFailed("garbage");
          return -1;
        case "comment":
          break;
      }
    }
    return from;
  }

  #token(): void {
    this.#released = true;
    if (this.#tokens++ === 0) this.#delivery.firstToken();
    else this.#delivery.progress(this.#tokens);
  }

  /**
   * The engine calls complete what has no token and no end: it is shutting down. (An answer without a token is well where
   * it says why the model stopped; a choice's finish_reason counts as a token.)
   */
  #isUnbegun(): boolean {
    const { dialect, writer } = this.#delivery;
    if (!promisesEnd(dialect) || this.#tokens > 0 || this.#ended || this.#refused || writer.bodySent) return false;
    return dialect !== "responses" || !hasOutputItems(this.#event());
  }

  /** An error of the client's making, told in the stream before anything else: no other endpoint would do better. */
  #isRefusal(): boolean {
    const code = this.#errorCode();
    return this.#tokens === 0 && code >= 400 && code < 500;
  }

  /**
   * The engine failed. While the client has nothing, another endpoint may serve it. Else it gets what came before; an
   * error of the engine's own goes with it, and a choice that ended in "abort" is replaced by one, since a client takes
   * any finish_reason for an end.
   */
  #stop(from: number): -1 {
    const { bytes, start, end, kind } = this.#scanner;
    const { writer } = this.#delivery;
    if (!writer.bodySent) {
      if (kind === "abort") this.#delivery.attemptFailed("draining");
      else {
        const kept = this.#keptError();
        this.#delivery.attemptFailed(faultOfEvent(this.#errorCode(), kept.body), kept);
      }
      return -1;
    }
    this.#pass(bytes, from, kind === "abort" ? start : end);
    if (kind === "abort") this.broke("draining");
    else {
      this.#delivery.counters.cuts++;
      this.#end("failed", "status");
    }
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

  #pass(bytes: Buffer, from: number, to: number): void {
    const piece = from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to);
    if (this.#held.length > 0 || !this.#released) return this.#passHeld(piece);
    if (!this.#delivery.writer.headSent) return this.#first(piece);
    this.#delivery.write(piece);
  }

  #passHeld(piece: Buffer): void {
    if (piece.length > 0) this.#held.push(piece);
    this.#heldBytes += piece.length;
    if (!this.#released && this.#heldBytes <= this.#delivery.limits.holdBytesMax) return;
    this.#released = true;
    const whole = Buffer.concat(this.#held.splice(0), this.#heldBytes);
    if (this.#delivery.writer.headSent) this.#delivery.write(whole);
    else this.#first(whole);
  }

  #first(piece: Buffer): void {
    const { writer } = this.#delivery;
    writer.headAndFirst(this.#head.status, this.#delivery.headers(this.#head, false), piece);
  }

  #remember(): void {
    this.#lastBytes = this.#scanner.bytes;
    this.#lastStart = this.#scanner.start;
    this.#lastEnd = this.#scanner.end;
  }

  #usage(): Usage | undefined {
    return this.#lastBytes === undefined ? undefined : findUsage(this.#lastBytes, this.#lastStart, this.#lastEnd);
  }
}

/** An engine may give its answer whole in the last event of OpenAI's responses. */
function hasOutputItems(event: Fields | undefined): boolean {
  const response = event?.["response"];
  const output = isFields(response) ? response["output"] : undefined;
  return Array.isArray(output) && output.length > 0;
}

const EMPTY = Buffer.alloc(0);
const BLANK_LINE = Buffer.from("\n\n");

/** These streams end with a mark of completion, so that its absence means a cut. */
function promisesEnd(dialect: Dialect): boolean {
  return dialect !== "other";
}
