import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import type { Micros } from "#core/base/units.ts";
import { parseAnswer, type AnswerPart } from "./answer.ts";
import type { ExchangeResult, SentOutcome } from "./exchange-result.ts";
import { SseReader } from "./sse-reader.ts";

const ENDPOINT_HEADER = "x-gnomon-endpoint";
const HIT_TOKENS_HEADER = "x-gnomon-hit-tokens";

/** A longer answer that is not a stream is not read to its end. */
const ANSWER_BYTES_MAX = 67_108_864;
/** So much of an error is read. */
const ERROR_BYTES_MAX = 16_384;
/** In vLLM's spacing; a chunk that has it ends nothing, so it is counted without being parsed. */
const GOES_ON = Buffer.from('"finish_reason":null');
const DONE = "[DONE]";

export interface ExchangeOptions {
  readonly stream: boolean;
  readonly now: () => Micros;
  /** The driver closes after so many chunks with content, at least 1; undefined to read to the end. */
  readonly abortAfterChunks: number | undefined;
  readonly onEnd: (result: ExchangeResult) => void;
}

/** One request on the wire: reads the answer's bytes as they come, measures, and reports exactly once. */
export class DriveExchange implements Dispatcher.DispatchHandler {
  readonly #options: ExchangeOptions;
  readonly #sentMicros: Micros;
  #controller: Dispatcher.DispatchController | undefined;
  /** Why the driver itself closed. */
  #closing: SentOutcome | undefined;
  #fault: SentOutcome | undefined;
  #ended = false;
  #status = 0;
  #endpoint = "";
  #gatewayHitTokens = Number.NaN;
  #headersMicros = Number.NaN;
  #firstTokenMicros = Number.NaN;
  #lastTokenMicros = Number.NaN;
  #contentChunks = 0;
  #done = false;
  #finishReason = "";
  #errorMessage = "";
  #promptTokens = Number.NaN;
  #cachedTokens = Number.NaN;
  #completionTokens = Number.NaN;
  #chunkMicros: Micros = 0;
  readonly #sse: SseReader | undefined;
  readonly #body: Buffer[] = [];
  #bodyBytes = 0;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.#sentMicros = options.now();
    if (options.stream) this.#sse = new SseReader((bytes, start, end) => this.#payload(bytes, start, end));
  }

  /** Closes the connection; the result has this outcome unless the answer was complete. */
  close(outcome: "aborted" | "cancelled" | "timeout"): void {
    if (this.#ended || this.#closing !== undefined) return;
    this.#closing = outcome;
    // Before the request has a connection there is no controller; onRequestStart closes it then.
    this.#controller?.abort(CLOSED);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#closing !== undefined) controller.abort(CLOSED);
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    this.#headersMicros = this.#options.now();
    this.#status = status;
    this.#endpoint = text(headers[ENDPOINT_HEADER]) ?? "";
    this.#gatewayHitTokens = Number(text(headers[HIT_TOKENS_HEADER]) ?? Number.NaN);
    const expected = this.#options.stream ? "text/event-stream" : "application/json";
    if (status !== 200) this.#fault = `http-${status}`;
    else if (!(text(headers["content-type"]) ?? "").startsWith(expected)) this.#fault = "content-type";
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#closing !== undefined) return;
    if (this.#fault !== undefined) {
      this.#keepError(chunk);
      return;
    }
    this.#chunkMicros = this.#options.now();
    if (this.#sse !== undefined) {
      if (!this.#sse.push(chunk)) this.#fault = "garbage";
      return;
    }
    this.#bodyBytes += chunk.length;
    if (this.#bodyBytes > ANSWER_BYTES_MAX) this.#fault = "garbage";
    else this.#body.push(chunk);
  }

  #keepError(chunk: Buffer): void {
    if (this.#bodyBytes + chunk.length > ERROR_BYTES_MAX || this.#status === 200) return;
    this.#bodyBytes += chunk.length;
    this.#body.push(chunk);
  }

  onResponseEnd(): void {
    if (this.#fault !== undefined && this.#body.length > 0)
      this.#errorMessage = parseAnswer(Buffer.concat(this.#body).toString("utf8"))?.errorMessage ?? "";
    if (this.#sse === undefined && this.#fault === undefined && this.#closing === undefined) {
      const answer = parseAnswer(Buffer.concat(this.#body).toString("utf8"));
      if (answer === undefined) this.#fault = "garbage";
      else this.#take(answer);
      this.#done = true;
    }
    this.#finish(this.#fault ?? (this.#done ? this.#verdict() : (this.#closing ?? "no-done")));
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    const code = "code" in error ? error.code : undefined;
    const connectFailed = typeof code === "string" && CONNECT_CODES.has(code) && Number.isNaN(this.#headersMicros);
    const cause = Number.isNaN(this.#headersMicros) ? (connectFailed ? "connect" : "no-response") : "cut";
    this.#errorMessage ||= typeof code === "string" ? code : error.message;
    this.#finish(this.#closing ?? this.#fault ?? cause);
  }

  #payload(bytes: Buffer, start: number, end: number): void {
    if (this.#done || this.#fault !== undefined || this.#closing !== undefined) return;
    const at = this.#contentChunks > 0 ? bytes.indexOf(GOES_ON, start) : -1;
    if (at >= 0 && at < end) return this.#content();
    const json = bytes.toString("utf8", start, end);
    if (json === DONE) {
      this.#done = true;
      return;
    }
    const part = parseAnswer(json);
    if (part === undefined) this.#fault = "garbage";
    else this.#take(part);
  }

  #take(part: AnswerPart): void {
    if (part.isError) {
      this.#fault = "in-band-error";
      this.#errorMessage = part.errorMessage ?? "";
    }
    this.#finishReason = part.finishReason ?? this.#finishReason;
    this.#promptTokens = part.promptTokens ?? this.#promptTokens;
    this.#cachedTokens = part.cachedTokens ?? this.#cachedTokens;
    this.#completionTokens = part.completionTokens ?? this.#completionTokens;
    if (part.hasContent) this.#content();
  }

  #content(): void {
    this.#contentChunks++;
    this.#lastTokenMicros = this.#chunkMicros;
    if (this.#contentChunks === 1) this.#firstTokenMicros = this.#chunkMicros;
    if (this.#contentChunks === this.#options.abortAfterChunks) this.close("aborted");
  }

  /** Of an answer that came to its end. */
  #verdict(): SentOutcome {
    if (this.#finishReason === "abort") return "engine-abort";
    // A token may have no text of its own; usage shows that it was there.
    return this.#contentChunks > 0 || this.#completionTokens > 0 ? "ok" : "empty";
  }

  #finish(outcome: SentOutcome): void {
    if (this.#ended) return;
    this.#ended = true;
    const streamed = this.#options.stream;
    this.#options.onEnd({
      outcome,
      status: this.#status,
      endpoint: this.#endpoint,
      sentMicros: this.#sentMicros,
      headersMicros: this.#headersMicros,
      firstTokenMicros: streamed ? this.#firstTokenMicros : Number.NaN,
      lastTokenMicros: streamed ? this.#lastTokenMicros : Number.NaN,
      endMicros: this.#options.now(),
      promptTokens: this.#promptTokens,
      cachedTokens: this.#cachedTokens,
      completionTokens: Number.isNaN(this.#completionTokens) ? this.#contentChunks : this.#completionTokens,
      gatewayHitTokens: this.#gatewayHitTokens,
      finishReason: this.#finishReason,
      errorMessage: this.#errorMessage,
    });
  }
}

const CLOSED = new Error("closed by the driver");

const CONNECT_CODES: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ETIMEDOUT",
  "UND_ERR_CONNECT_TIMEOUT",
]);

function text(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}
