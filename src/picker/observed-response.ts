import type { Fault } from "#core/endpoint/fault.ts";
import type { Outcome } from "#core/endpoint/outcome.ts";
import { isAborted } from "#live/answer/aborted-answer.ts";
import type { AnswerReader } from "#live/answer/answer-reader.ts";
import { faultOfStatus, isFailedStatus } from "#live/answer/faults.ts";
import { isMediaType, type RequestHeaders } from "#live/http/headers.ts";
import { outerText, type Usage, findUsage } from "#live/answer/answer-json.ts";
import { eventData, responseIdOf, SseScanner } from "#live/answer/sse-scanner.ts";
import { promisesEnd } from "#live/answer/stream-answer.ts";
import { nowMicros } from "#live/base/clock.ts";
import type { Dialect } from "#live/http/route.ts";
import type { GatewayLimits } from "#live/http/limits.ts";
import type { TokenProgress } from "#live/upstream/token-progress.ts";

/** The request that it answers. */
export interface ObservedRequest {
  readonly dialect: Dialect;
  readonly limits: GatewayLimits;
  readonly tokens: TokenProgress;
  readonly reader: AnswerReader | undefined;
  /** The first token passed. */
  passed(): void;
}

/** How a response went, by what passed; a fault where its engine failed. */
export interface ObservedEnd {
  readonly outcome: Outcome;
  readonly fault: Fault | undefined;
  readonly usage: Usage | undefined;
  readonly outputTokens: number | undefined;
  /** Id of an answer of /v1/responses, which its engine may have stored. */
  readonly responseId?: string | undefined;
}

/**
 * Reads a response that a proxy carries, as its pieces pass: first token, progress, usage, end. It changes nothing of it.
 * Where the proxy does not send the body, only the head and the end are known.
 */
export class ObservedResponse {
  readonly status: number;
  readonly #request: ObservedRequest;
  readonly #scanner: SseScanner | undefined;
  #whole: Buffer[] | undefined;
  #bytes = 0;
  #tokens = 0;
  #lastEvent: Buffer = EMPTY;
  #broke: Fault | undefined;
  #marked = false;
  #sawBody = false;
  #responseId: string | undefined;

  constructor(headers: RequestHeaders, request: ObservedRequest) {
    this.#request = request;
    this.status = Number(headers.get(":status")) || 0;
    const type = headers.get("content-type");
    const readable = headers.get("content-encoding") === "";
    const streams = readable && this.status === 200 && isMediaType(type, "text/event-stream");
    this.#scanner = streams ? new SseScanner(request.dialect, request.limits.eventBytesInspected) : undefined;
    this.#whole = !streams && readable && isMediaType(type, "application/json") ? [] : undefined;
  }

  /** Whether its body is text that may be changed as it passes: events, or JSON. */
  get isReadable(): boolean {
    return this.#scanner !== undefined || this.#whole !== undefined;
  }

  data(chunk: Buffer): void {
    this.#sawBody = true;
    if (this.#scanner !== undefined) this.#scan(this.#scanner, chunk);
    else if (this.#whole !== undefined) this.#keep(this.#whole, chunk);
  }

  /** The response is over: as its engine ended it, or broken off before that. */
  ended(complete: boolean): ObservedEnd {
    const { reader, tokens } = this.#request;
    const body = this.#whole === undefined || this.#whole.length === 0 ? undefined : Buffer.concat(this.#whole);
    const usage = this.#scanner === undefined ? body && findUsage(body) : findUsage(this.#lastEvent);
    const fault = this.#fault(complete, body, usage);
    if (fault !== undefined) return { outcome: "failed", fault, usage, outputTokens: usage?.outputTokens };
    if (!complete) return { outcome: "aborted", fault: undefined, usage, outputTokens: this.#tokens || undefined };
    if (this.status >= 400) return { outcome: "refused", fault: undefined, usage, outputTokens: undefined };
    if (body !== undefined) reader?.whole(body);
    const seen = this.#scanner === undefined ? undefined : tokens.seen;
    const responseId =
      this.#responseId ?? (body && this.#request.dialect === "responses" ? outerText(body, "id") : undefined);
    return { outcome: "ok", fault: undefined, usage, outputTokens: usage?.outputTokens ?? seen, responseId };
  }

  /** A stream without its mark of completion was cut, unless nobody showed it here. */
  #fault(complete: boolean, body: Buffer | undefined, usage: Usage | undefined): Fault | undefined {
    if (this.#broke !== undefined) return this.#broke;
    const { dialect } = this.#request;
    if (complete && this.status === OK && body !== undefined && isAborted(dialect, body, usage)) return "draining";
    if (isFailedStatus(this.status)) return faultOfStatus(this.status, body ?? EMPTY);
    const promised = this.#scanner !== undefined && promisesEnd(dialect);
    return complete && promised && this.#sawBody && !this.#marked ? "cut" : undefined;
  }

  #scan(scanner: SseScanner, chunk: Buffer): void {
    scanner.push(chunk);
    while (scanner.next()) {
      const { kind, bytes, start, end } = scanner;
      if (kind === "meta" && this.#request.dialect === "responses")
        this.#responseId ??= responseIdOf(eventData(bytes.subarray(start, end)));
      if (kind === "token") {
        this.#token(bytes, start, end);
      } else if (kind === "done") this.#marked = true;
      else if (kind === "error") this.#broke = "status";
      else if (kind === "abort") this.#broke = "draining";
      if (kind !== "comment" && kind !== "garbage" && !this.#isBareMark(kind))
        this.#lastEvent = bytes.subarray(start, end);
    }
  }

  /** OpenAI's [DONE] counts nothing; the last event of its responses does. */
  #isBareMark(kind: string): boolean {
    return kind === "done" && this.#request.dialect !== "responses";
  }

  #token(bytes: Buffer, start: number, end: number): void {
    const { reader, tokens } = this.#request;
    reader?.event(bytes, start, end);
    this.#tokens++;
    if (this.#tokens === 1) this.#request.passed();
    else if (tokens.reaches(this.#tokens)) tokens.report(nowMicros());
  }

  #keep(whole: Buffer[], chunk: Buffer): void {
    const { answerBytesInspected, errorBytesKept } = this.#request.limits;
    this.#bytes += chunk.length;
    if (this.#bytes <= (this.status >= 400 ? errorBytesKept : answerBytesInspected)) whole.push(chunk);
    else this.#whole = undefined;
  }
}

const EMPTY = Buffer.alloc(0);
const OK = 200;
