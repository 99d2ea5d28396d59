import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

import { MICROS_PER_MILLI, type Micros } from "#core/units.ts";

import type { AnswerReader, AnswerReport } from "../answer/answer-reader.ts";
import type { ChatContext } from "../chat-context.ts";
import { ClientWriter } from "../answer/client-writer.ts";
import { nowMicros } from "../clock.ts";
import type { Asker } from "../loop-turn.ts";
import { ERRORS, type ErrorReason, type Refusal, errorBody, errorHeaders, refusal } from "../answer/errors.ts";
import type { Forward, ForwardResult } from "../upstream/forward.ts";
import { type OwnHeaders, pushOwn } from "./headers.ts";
import { givenRequestId } from "./identity.ts";
import type { Swept } from "./in-flight.ts";
import { RequestHeaders } from "./request-headers.ts";
import type { RequestSummary } from "./request-summary.ts";
import type { CountedPrompt } from "../status/decisive.ts";
import type { Place } from "./place.ts";
import type { Route } from "./route.ts";
import type { TokenizedPrompt, Tokenizer } from "../tokenizer/tokenizer.ts";

/** One inference request and its answer, from the request's head to the answer's last byte. */
export class Exchange implements Swept, Asker {
  readonly context: ChatContext;
  readonly incoming: IncomingMessage;
  readonly headers: RequestHeaders;
  readonly writer: ClientWriter;
  readonly route: Route;
  /** Path and query as the endpoint gets them. */
  readonly path: string;
  readonly requestId: string;
  /** The same, made unique; what the router knows. */
  readonly routeId: string;
  slot = 0;
  readonly openedAt: Micros = nowMicros();
  arrivedAt: Micros = this.openedAt;
  model = "";
  stream = false;
  /** Where the answer's tokens can be found out and continue the prompt's blocks. */
  answerReader: AnswerReader | undefined;
  /** As the router knows its length. */
  prompt: CountedPrompt = { promptTokens: 0, exact: true };
  /** The client left, or the answer is complete. */
  over = false;
  /** The router knows the request and has not been told of its end. */
  #routed = false;
  #forward: Forward | undefined;
  #bodyBytes = 0;
  #overAt: Micros = 0;
  /** Reason of the gateway's own error; "" where it sent none. */
  #refusedFor: ErrorReason | "" = "";
  #tokenizer: Tokenizer | undefined;
  #prompt: TokenizedPrompt | undefined;
  readonly #response: ServerResponse;

  constructor(context: ChatContext, incoming: IncomingMessage, response: ServerResponse, place: Place) {
    this.context = context;
    this.incoming = incoming;
    this.#response = response;
    this.writer = new ClientWriter(response);
    this.route = place.route;
    this.path = place.path;
    this.headers = new RequestHeaders(incoming.rawHeaders);
    const given = givenRequestId(this.headers);
    this.requestId = given === "" ? randomUUID() : given;
    this.routeId = given === "" ? this.requestId : `${given}.${(context.sequence++).toString(36)}`;
    context.inFlight.add(this);
    response.on("close", () => this.#closed());
  }

  /** Counts bytes of the body among those held, until the exchange is over; false where there is no room for them. */
  holdBody(bytes: number): boolean {
    const { context } = this;
    if (this.over || context.bodyBytesInFlight + bytes > context.limits.bodyBytesInFlightMax) return false;
    this.#bodyBytes += bytes;
    context.bodyBytesInFlight += bytes;
    return true;
  }

  /** The tokenizer is to hear the engine's own count of the prompt. */
  encoded(tokenizer: Tokenizer, prompt: TokenizedPrompt): void {
    this.#tokenizer = tokenizer;
    this.#prompt = prompt;
  }

  /** The router is about to hear of the request's arrival; from here on it must hear of its end. */
  arrived(): void {
    this.#routed = true;
  }

  forward(forward: Forward): void {
    this.#forward = forward;
    forward.send();
  }

  /** Answers with an error of the gateway's own and ends the exchange. */
  refuse(refused: Refusal): void {
    if (this.over) return;
    const { reason } = refused;
    this.context.counters.refused[reason] = (this.context.counters.refused[reason] ?? 0) + 1;
    this.answerRefusal(refused, "");
    const outcome = reason === "deadline" ? "timeout" : "refused";
    this.finished({ outcome, usage: undefined, outputTokens: undefined, firstTokenAt: undefined });
  }

  answerRefusal(refused: Refusal, endpoint: string): void {
    this.#refusedFor = refused.reason;
    const body = Buffer.from(errorBody(refused, this.route.dialect));
    const headers = errorHeaders(refused, body.length, this.context.tellsOwnHeaders);
    pushOwn(headers, { ...this.ownHeaders(endpoint, ""), close: !this.incoming.complete || this.context.leaving });
    this.writer.whole(ERRORS[refused.reason].status, headers, body);
  }

  ownHeaders(endpoint: string, reason: string): OwnHeaders {
    const hitTokens = this.#forward?.routed.hitTokens ?? 0;
    const { leaving: close, tellsOwnHeaders: tells, cors } = this.context;
    const forOrigin = cors?.of(this.headers.get("origin"));
    return { requestId: this.requestId, endpoint, reason, hitTokens, close, tells, cors: forOrigin };
  }

  /** Of the answer's head; 0 before it is sent. */
  get status(): number {
    return this.writer.headSent ? this.#response.statusCode : 0;
  }

  /** The one place where a request ends: tells the router, once, and then the observer. */
  finished(result: ForwardResult): void {
    if (this.over) return;
    const { context } = this;
    const at = nowMicros();
    this.over = true;
    this.#overAt = at;
    if (this.#routed) {
      const answer = this.#answer(result);
      context.journal.accept({
        kind: "request-finished",
        at,
        requestId: this.routeId,
        outcome: result.outcome,
        promptTokens: result.usage?.promptTokens,
        cachedTokens: result.usage?.cachedTokens,
        outputTokens: result.outputTokens,
        ...answer,
      });
    }
    context.bodyBytesInFlight -= this.#bodyBytes;
    if (result.usage?.promptTokens !== undefined && this.#prompt !== undefined) {
      this.#tokenizer?.learn(this.model, this.#prompt, result.usage.promptTokens);
    }
    context.observe.finished(this.#summary(at, result));
  }

  /** What an engine computed before its client left stays in its cache; one that broke may have lost it. */
  #answer({ outcome, usage }: ForwardResult): AnswerReport | undefined {
    if (outcome !== "ok" && outcome !== "aborted") return undefined;
    return this.answerReader?.ended(this.routeId, usage);
  }

  #summary(at: Micros, { outcome, usage, outputTokens, firstTokenAt }: ForwardResult): RequestSummary {
    const forward = this.#forward;
    const whole = outcome === "ok" && firstTokenAt === undefined ? at : undefined;
    const ttftEnd = firstTokenAt ?? whole;
    const counted = outcome === "ok" && firstTokenAt !== undefined && outputTokens !== undefined && outputTokens > 1;
    return {
      requestId: this.requestId,
      method: this.incoming.method ?? "",
      route: this.route.pattern,
      model: this.model,
      endpoint: forward?.endpoint ?? "",
      profile: forward?.routed.profile ?? "",
      reason: this.#refusedFor === "" ? (forward?.routed.reason ?? "") : this.#refusedFor,
      status: this.status,
      outcome,
      stream: this.stream,
      attempts: forward?.attempts ?? 0,
      ttftMicros: ttftEnd === undefined || forward === undefined ? undefined : ttftEnd - forward.decidedAt,
      tpotMicros: counted ? (at - firstTokenAt) / (outputTokens - 1) : undefined,
      e2eMicros: at - this.arrivedAt,
      promptTokens: usage?.promptTokens,
      cachedTokens: usage?.cachedTokens,
      outputTokens,
      hitTokens: forward?.routed.hitTokens ?? 0,
    };
  }

  answersOn(socket: Duplex): boolean {
    return this.incoming.socket === socket && (this.incoming.complete || this.writer.headSent);
  }

  sweep(at: Micros): void {
    if (!this.over) this.#sweepForward(at);
    else if (at - this.#overAt > this.context.limits.writeStallMillisMax * MICROS_PER_MILLI) this.stalled();
  }

  #sweepForward(at: Micros): void {
    try {
      this.#forward?.sweep(at);
    } catch (error) {
      this.bug(error);
    }
  }

  /** A defect of ours met this request; the process and all other requests go on. */
  bug(error: unknown): void {
    this.context.counters.internalErrors++;
    this.context.observe.bug?.(error);
    if (this.writer.headSent) this.writer.destroy();
    else this.refuse(refusal("internal", "The gateway failed on this request."));
  }

  /** The client does not read what waits for it. */
  stalled(): void {
    this.context.counters.clientStalls++;
    this.context.observe.fault?.({
      kind: "client-stalled",
      requestId: this.requestId,
      endpoint: this.#forward?.endpoint ?? "",
      detail: "it read nothing while bytes waited for it, longer than limits.writeStallMillisMax",
      done: "its connection was closed and the engine stopped",
    });
    this.writer.destroy();
  }

  #closed(): void {
    this.context.inFlight.remove(this);
    if (this.over) return;
    if (this.#forward !== undefined) return this.#forward.abandon();
    this.context.counters.clientAborts++;
    this.finished({ outcome: "aborted", usage: undefined, outputTokens: undefined, firstTokenAt: undefined });
  }
}
