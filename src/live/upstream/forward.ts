import type { Routed } from "#core/decision.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { Outcome } from "#core/endpoint/outcome.ts";
import { type GiveUpReason, afterFault } from "#core/retry/after-fault.ts";
import { waitVerdict } from "#core/retry/wait-verdict.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/units.ts";

import type { Answer, AnswerEnd, AnswerHead, Delivery, KeptAnswer } from "../answer/answer.ts";
import type { AnswerReader } from "../answer/answer-reader.ts";
import { Attempt, type AttemptListener } from "./attempt.ts";
import { AttemptSigns } from "./attempt-signs.ts";
import { chooseAnswer } from "../answer/choose-answer.ts";
import { nowMicros } from "../clock.ts";
import { giveUp } from "./give-up.ts";
import { refusal } from "../answer/errors.ts";
import type { Exchange } from "../request/exchange.ts";
import { faultOfError } from "../answer/fault-words.ts";
import { type AnswerHeaders, clientHeaders, upstreamHeaders } from "../request/headers.ts";
import { cutEvent, givenUpEvent, retriedEvent } from "../log/attempt-events.ts";
import { decisiveText } from "../status/decisive.ts";
import { StreamAnswer } from "../answer/stream-answer.ts";
import { TokenProgress } from "./token-progress.ts";
import type { Usage } from "../answer/usage.ts";

/** How a forwarded request went. */
export interface ForwardResult {
  readonly outcome: Outcome;
  readonly usage: Usage | undefined;
  readonly outputTokens: number | undefined;
  readonly firstTokenAt: Micros | undefined;
}

/**
 * Takes a routed request to its endpoint and the answer to the client: attempt after attempt while the client has seen
 * nothing, within the retry budget and the limits. Tells the router of every turn, and of the end exactly once.
 */
export class Forward implements AttemptListener, Delivery {
  readonly #exchange: Exchange;
  readonly #body: Buffer;
  readonly hidesUsage: boolean;
  readonly answerReader: AnswerReader | undefined;
  readonly decidedAt: Micros;
  #routed: Routed;
  #attempts = 0;
  #attempt: Attempt | undefined;
  #answer: Answer | undefined;
  #tokens: TokenProgress;
  #signs: AttemptSigns;
  #over = false;

  constructor(exchange: Exchange, body: Buffer, routed: Routed, hidesUsage: boolean) {
    this.#exchange = exchange;
    this.#body = body;
    this.#routed = routed;
    this.#tokens = this.#newTokens();
    this.hidesUsage = hidesUsage;
    this.answerReader = exchange.answerReader;
    this.decidedAt = routed.at;
    this.#signs = new AttemptSigns(exchange, this.endpoint, routed.at);
  }

  get writer() {
    return this.#exchange.writer;
  }
  get limits() {
    return this.#exchange.context.limits;
  }
  get counters() {
    return this.#exchange.context.counters;
  }
  get dialect() {
    return this.#exchange.route.dialect;
  }
  get requestId(): string {
    return this.#exchange.requestId;
  }
  get attempts(): number {
    return this.#attempts;
  }
  get endpoint(): string {
    return this.#routed.endpoint;
  }
  get routed(): Routed {
    return this.#routed;
  }

  /** Sends the request to the endpoint that was decided on. */
  send(): void {
    const { context, headers: given, requestId, path } = this.#exchange;
    this.#attempts++;
    this.#answer = undefined;
    if (this.#attempts > 1) {
      this.#tokens = this.#newTokens();
      this.#signs = new AttemptSigns(this.#exchange, this.endpoint, nowMicros());
    }
    this.answerReader?.reset();
    const upstream = context.pools.get(this.#routed.endpoint);
    if (upstream === undefined) return this.attemptFailed("connect");
    if (upstream.inFlight >= context.limits.upstreamConnectionsMax) return this.attemptFailed("saturated");
    const headers = upstreamHeaders(given, upstream.entry, {
      requestId,
      dropAuthorization: context.keepsAuthorization,
    });
    this.#attempt = new Attempt(upstream, { path, headers, body: this.#body }, this);
    this.#attempt.send();
  }

  answerStarted(status: number, headers: AnswerHeaders): void {
    const head: AnswerHead = { status, headers };
    try {
      this.#answer = chooseAnswer(this, head);
      // The head of a stream comes before its prompt is computed, and is no sign of the engine.
      if (!(this.#answer instanceof StreamAnswer)) this.#signs.heard();
      if (this.#answer === undefined) this.attemptFailed("garbage");
    } catch (error) {
      this.#exchange.bug(error);
    }
  }

  answerData(chunk: Buffer): void {
    this.#signs.heard();
    try {
      this.#answer?.data(chunk);
    } catch (error) {
      this.#exchange.bug(error);
    }
  }

  answerEnded(): void {
    try {
      this.#answer?.ended();
    } catch (error) {
      this.#exchange.bug(error);
    }
  }

  attemptReconnects(): void {
    this.counters.reconnects++;
  }

  attemptBroke(error: Error): void {
    try {
      this.#broke(error);
    } catch (bug) {
      this.#exchange.bug(bug);
    }
  }

  #broke(error: Error): void {
    if (this.#answer !== undefined) return this.#answer.broke("cut");
    const fault = faultOfError(error);
    if (fault !== undefined) return this.attemptFailed(fault);
    this.#exchange.refuse(refusal("bad-request", "The request has a header or a path that cannot be passed on."));
    this.#over = true;
  }

  headers(head: AnswerHead, keepLength: boolean, promptTokens = Infinity): string[] {
    const why = decisiveText(this.#routed, this.#exchange.prompt);
    const own = this.#exchange.ownHeaders(this.endpoint, why);
    return clientHeaders(head.headers, { ...own, hitTokens: Math.min(own.hitTokens, promptTokens) }, keepLength);
  }

  write(piece: Buffer): void {
    if (this.writer.write(piece) || this.#attempt === undefined) return;
    const attempt = this.#attempt;
    attempt.pause();
    this.writer.onDrain(() => attempt.resume());
  }

  #newTokens(): TokenProgress {
    const { context, routeId: requestId } = this.#exchange;
    const { journal, limits, counters } = context;
    return new TokenProgress({ journal, limits, counters, requestId });
  }

  firstToken(): void {
    this.#tokens.first(nowMicros());
  }

  progress(tokensSeen: number): void {
    if (this.#tokens.reaches(tokensSeen)) this.#tokens.report(nowMicros());
  }

  attemptFailed(fault: Fault, kept?: KeptAnswer): void {
    if (this.#over) return;
    const { context, routeId } = this.#exchange;
    this.#dropAttempt();
    this.counters.faults[fault] = (this.counters.faults[fault] ?? 0) + 1;
    const after = afterFault(context.attempts, routeId, fault, this.#attempts);
    if (after.kind === "give-up") return this.#giveUp(fault, kept, after.why);
    const { decision } = after;
    this.counters.retries++;
    context.observe.retried(fault);
    context.observe.fault?.(retriedEvent(this, fault, decision.endpoint));
    this.#routed = decision;
    this.send();
  }

  /** No endpoint is left to try. */
  #giveUp(fault: Fault, kept: KeptAnswer | undefined, why: GiveUpReason): void {
    if (fault === "timeout") this.counters.timeouts++;
    if (why === "budget") this.counters.retriesDenied++;
    giveUp(this.#exchange, this.endpoint, fault, kept);
    this.#exchange.context.observe.fault?.(givenUpEvent(this, fault, why, this.#exchange.status));
    this.#finish({ outcome: fault === "timeout" ? "timeout" : "failed", usage: undefined, tokensSeen: undefined });
  }

  finished(end: AnswerEnd): void {
    if (end.fault !== undefined) this.#exchange.context.observe.fault?.(cutEvent(this, end.fault, end.tokensSeen));
    this.#finish(end);
  }

  /** The client left. */
  abandon(): void {
    if (this.#over) return;
    this.counters.clientAborts++;
    this.#finish({ outcome: "aborted", usage: undefined, tokensSeen: this.#tokens.seen });
  }

  sweep(at: Micros): void {
    if (this.#over) return;
    const { arrivedAt, stream, context, routeId } = this.#exchange;
    const { blocked, bodySent } = this.writer;
    this.#tokens.sweep(at);
    const quietMicros = this.#signs.sweep(at, this.#attempt !== undefined && !blocked);
    const trouble = this.#signs.trouble(at);
    const held = this.#answer !== undefined && !(this.#answer instanceof StreamAnswer);
    const waiting = { at, arrivedAt, quietMicros, begun: bodySent, held, streams: stream, blocked, trouble };
    const fault = trouble?.kind === "lost" ? "connect" : "hung";
    const verdict = waitVerdict(waiting, context.waits, () => {
      const denied = context.attempts.retries.denial(fault, this.#attempts) !== undefined;
      return !denied && context.journal.router.hasTaker(at, routeId);
    });
    switch (verdict) {
      case "time-out":
        return this.#timeOut();
      case "stalled":
        return this.#exchange.stalled();
      case "cut":
        return this.#answer?.broke(fault);
      case "move":
        if (trouble !== undefined) this.counters.moved[trouble.kind] = (this.counters.moved[trouble.kind] ?? 0) + 1;
        return this.attemptFailed(fault);
      case "give-up":
        return this.attemptFailed(fault);
      case "wait":
        return this.#showHead(at - arrivedAt);
    }
  }

  #showHead(waited: Micros): void {
    const { holdMillis } = this.limits;
    if (holdMillis === undefined || waited < holdMillis * MICROS_PER_MILLI || this.writer.headSent) return;
    if (this.#answer instanceof StreamAnswer) this.#answer.showHead();
  }

  #timeOut(): void {
    if (this.#answer === undefined || !this.writer.bodySent) return this.attemptFailed("timeout");
    this.counters.timeouts++;
    this.#answer.broke("timeout");
  }

  #finish(end: Omit<AnswerEnd, "outcome"> & { readonly outcome: Outcome }): void {
    if (this.#over) return;
    this.#over = true;
    this.#dropAttempt();
    this.#answer = undefined;
    if (end.outcome === "ok") this.#signs.completed(this.#tokens.firstAt, nowMicros());
    this.#exchange.finished({
      outcome: end.outcome,
      usage: end.usage,
      outputTokens: end.usage?.outputTokens ?? end.tokensSeen,
      firstTokenAt: this.#tokens.firstAt,
    });
  }

  #dropAttempt(): void {
    this.#attempt?.abort();
    this.#attempt = undefined;
  }
}
