import type { Routed } from "#core/input/decision.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import { type Micros, MICROS_PER_MILLI } from "#core/base/units.ts";
import type { AnswerHead, Delivery, EventOutput, KeptAnswer } from "../answer/answer.ts";
import { type Attempt, type AttemptListener, openAttempt } from "./connection/attempt.ts";
import type { PathStage } from "#core/path/stage.ts";
import type { SentContent } from "../request/engine-body.ts";
import { AnswerDelivery, type EngineErrors } from "./answer-delivery.ts";
import { AttemptSigns } from "./connection/attempt-signs.ts";
import { isUnderWay } from "#core/path/path-state.ts";
import { nowMicros } from "../base/clock.ts";
import { refusal } from "../http/errors.ts";
import type { ForwardedRequest } from "./forwarded-request.ts";
import { cutRefusal, errorEvent, faultOfError, reasonOf } from "../answer/faults.ts";
import { type AnswerHeaders, clientHeaders } from "../http/headers.ts";
import { cutEvent, givenUpEvent, retriedEvent } from "../log/attempt-events.ts";
import type { AttemptEffect, ErrorEffect, Finish, ReportEffect } from "#core/path/path-effect.ts";
import { attemptFailed, CLIENT_STALLED, HOLD_OVER, type PathEvent, TIMED_OUT } from "#core/path/path-event.ts";
import type { AheadPart, StandbyAttempts } from "./stage-performer.ts";
import { progressOf, type TokenProgress } from "./token-progress.ts";
import { countUp } from "../base/gateway-counters.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { EndpointEntry } from "../endpoints/endpoint-directory.ts";
import { type FoundAttempt, isOverdue, look } from "#core/path/look.ts";
import { faultOfLeaving } from "#core/path/wait-verdict.ts";
import type { Outcome } from "#core/endpoint/outcome.ts";
import type { Usage } from "../answer/answer-json.ts";

/**
 * The endpoint's side of a routed request: turns what its attempts do into events, by the delivery of their answers, and
 * carries out the effects that follow. Where the request is and what may happen next is known to its state alone.
 */
export class Forward implements AttemptListener {
  readonly #exchange: ForwardedRequest;
  readonly firstBody: Buffer;
  /** What is sent next. */
  content: SentContent;
  #waitsForRoom = false;
  /** Of the answer under way, as they came. */
  #answerBytes = 0;
  readonly #delivery: AnswerDelivery;
  readonly decidedAt: Micros;
  #routed: Routed;
  /** What another endpoint than the one that answers does of it. */
  #ahead: AheadPart | undefined;
  #sends = 0;
  #attempt: Attempt | undefined;
  #tokens: TokenProgress;
  #signs: AttemptSigns;
  /** Where another attempt may stand by. */
  #standby: StandbyAttempts | undefined;
  /** What the request's life has beside attempts. */
  readonly stages: PathStage[] = [];
  /** Of the whole answer, where it went on elsewhere; else the attempt's own. */
  #firstTokenAt: Micros | undefined;

  constructor(exchange: ForwardedRequest, body: Buffer, routed: Routed, hidesUsage: boolean) {
    this.#exchange = exchange;
    this.firstBody = body;
    this.content = { path: exchange.path, body };
    this.#routed = routed;
    this.#ahead = this.#aheadOf(routed);
    this.#tokens = progressOf(this.#exchange);
    this.#delivery = new AnswerDelivery(exchange, this, hidesUsage);
    this.decidedAt = routed.at;
    for (const stageOf of exchange.shared.performers.stages) {
      const stage = stageOf(exchange, this);
      if (stage !== undefined) this.stages.push(stage);
    }
    this.#signs = new AttemptSigns(exchange.shared, this.endpoint, routed.at, exchange.stream, this.#promptTokens);
  }

  get requestId(): string {
    return this.#exchange.requestId;
  }
  get attempts(): number {
    return this.#exchange.state.attempts;
  }
  get endpoint(): string {
    return this.#ahead?.stage.endpoint ?? this.#routed.endpoint;
  }
  get routed(): Routed {
    return this.#routed;
  }
  get cachedTokens(): number | undefined {
    return this.#ahead?.stage.cachedTokens;
  }
  get tokens(): TokenProgress {
    return this.#tokens;
  }
  /** Output tokens of the answer under way; undefined where it does not stream. */
  get tokensSeen(): number | undefined {
    return this.#delivery.answer?.carriage === "stream" ? this.#tokensOfAll : undefined;
  }
  /** Tokens that the endpoint has to compute before it answers, where it is believed to hold the others. */
  get #promptTokens(): number {
    const { prompt, keeper } = this.#exchange;
    const { hitTokens, heldTokens = hitTokens } = this.#routed;
    return prompt.promptTokens + (keeper?.continuedTokens ?? 0) - heldTokens;
  }
  get #tokensOfAll(): number {
    return this.#tokens.seen + (this.#exchange.keeper?.continuedTokens ?? 0);
  }

  /** Carries out an effect; returns the event that answers one that asks. */
  perform(effect: AttemptEffect): PathEvent | undefined {
    switch (effect.kind) {
      case "send":
        return this.#send();
      case "release-attempt":
        this.#attempt?.abort();
        this.#attempt = undefined;
        this.#ahead?.release();
        break;
      case "write-held":
      case "write-whole":
        this.#delivery.answer?.writeHeld();
        this.#exchange.written();
        break;
      case "show-head":
        this.#delivery.answer?.showHead();
        break;
      case "write-kept":
      case "write-error":
      case "write-error-event":
        writeError(this.#exchange, this.endpoint, effect, this.#delivery.errorsOf(effect.fault));
        break;
      case "report-first-token":
        reportAttempt(this.#exchange, this, effect);
        break;
      case "report-timeout":
      case "report-retried":
      case "report-given-up":
      case "report-cut":
        reportAttempt(this.#exchange, this, effect);
    }
    return undefined;
  }

  #send(): PathEvent | undefined {
    const { shared, answerReader, judge, keeper, state } = this.#exchange;
    const { content } = this;
    this.#delivery.answer = undefined;
    const sent = this.#ahead?.next(content.path, content.body, (fault) => this.#besideFailed(fault));
    if (this.#sends++ > 0) this.#tokens = progressOf(this.#exchange);
    if (this.#sends > 1 || sent !== undefined) {
      const stream = this.#exchange.stream && state.kind !== "ahead";
      this.#signs = new AttemptSigns(shared, this.endpoint, nowMicros(), stream, this.#promptTokens);
    }
    answerReader?.reset();
    judge?.reset();
    if (state.kind !== "resuming") keeper?.reset();
    const taken = this.#standby?.taken();
    if (taken !== undefined) {
      [this.#attempt, this.#signs] = [taken.attempt, taken.signs];
      return taken.passTo(this);
    }
    const { priority } = this.#routed;
    const request = { ...content, ...sent, endpoint: this.endpoint, priority };
    const attempt = openAttempt(this.#exchange, request, this);
    if (typeof attempt === "string") return attemptFailed(attempt);
    this.#attempt = attempt;
    attempt.send();
    return undefined;
  }

  /** Its attempt failed, and it goes to this endpoint next. */
  retried(decision: Routed, fault: Fault): void {
    this.#exchange.shared.observe.fault?.(retriedEvent(this, fault, decision.sentFirst ?? decision.endpoint));
    this.decided(decision);
  }

  decided(routed: Routed): void {
    this.#ahead?.release();
    this.#ahead?.stage.close(routed.endpoint);
    this.#routed = routed;
    this.#ahead = this.#aheadOf(routed);
  }

  #aheadOf(routed: Routed): AheadPart | undefined {
    const before = this.#ahead === undefined ? -1 : this.stages.indexOf(this.#ahead.stage);
    if (before >= 0) this.stages.splice(before, 1);
    const ahead = this.#exchange.shared.performers.aheadOf(this.#exchange, routed);
    if (ahead !== undefined) this.stages.push(ahead.stage);
    return ahead;
  }

  #besideFailed(fault: Fault): void {
    const { kind } = this.#exchange.state;
    if (kind === "waiting" || kind === "holding") this.#delivery.attemptFailed(fault);
  }

  /** The stream goes on at another endpoint; its client has a part of it, or none where its judge gave that up. */
  continueAt(routed: Routed, begun = true): void {
    if (begun) this.#firstTokenAt ??= this.#tokens.firstAt;
    this.decided(routed);
  }

  answerStarted(status: number, headers: AnswerHeaders): void {
    const head: AnswerHead = { status, headers };
    this.#answerBytes = 0;
    const { state } = this.#exchange;
    try {
      if (state.kind === "resuming") {
        this.#delivery.answer = this.#exchange.keeper?.goesOn(this.#delivery, head);
        if (this.#delivery.answer === undefined) this.#delivery.attemptFailed(status === 503 ? "saturated" : "status");
        return;
      }
      this.#delivery.answer = this.#ahead?.answerOf(this.#delivery, head);
      if (this.#delivery.answer !== undefined) return this.#signs.alive();
      const answer = this.#exchange.shared.answerOf(this.#delivery, head, this.#exchange.routeId);
      this.#delivery.answer = answer;
      // The head of a stream comes before its prompt is computed, and is no sign of the engine.
      if (answer?.carriage !== "stream") this.#signs.alive();
      if (answer === undefined) this.#delivery.attemptFailed("garbage");
      else this.#exchange.dispatch({ kind: "answer-began", carriage: answer.carriage });
    } catch (error) {
      this.#exchange.bug(error);
    }
  }

  answerData(chunk: Buffer): void {
    this.#signs.alive();
    this.#reads(() => this.#delivery.answer?.data(chunk));
    this.#answerBytes += chunk.length;
    if (this.#answerBytes <= SHORT_ANSWER_BYTES || this.#delivery.answer?.carriage !== "whole") return;
    if (this.#exchange.shared.unread.isFull) this.#waitForRoom();
  }

  answerChunks(bytes: Buffer, to: number): number {
    this.#signs.alive();
    return this.#reads(() => this.#delivery.answer?.chunks?.(bytes, to)) ?? 0;
  }

  answerEnded(): void {
    this.#reads(() => this.#delivery.answer?.ended());
  }

  /** A defect that shows while an answer is read is its request's own. */
  #reads<T>(read: () => T): T | undefined {
    try {
      return read();
    } catch (error) {
      this.#exchange.bug(error);
      return undefined;
    }
  }

  attemptReconnects(): void {
    this.#exchange.shared.counters.reconnects++;
  }

  attemptBroke(error: Error): void {
    if (this.#delivery.answer !== undefined) return this.#delivery.broke("cut");
    this.#exchange.shared.openFiles.met(error);
    const fault = faultOfError(error);
    if (fault !== undefined) return this.#delivery.attemptFailed(fault);
    this.#exchange.refuse(refusal("bad-request", "The request has a header or a path that cannot be passed on."));
  }

  /** Asks the endpoint under way whether it still serves; nobody waits for that once the attempt is over. */
  proveEnd(then: (isWhole: boolean) => void): void {
    this.#ask((entry) => this.#exchange.shared.serving.ask(entry), then);
  }

  /** The same of how many tokens have a part of the text of all. */
  tokensUpTo(length: number, { ids: tokens, text }: EventOutput, then: (tokens: number) => void): void {
    const { model, shared } = this.#exchange;
    this.#ask((entry) => shared.tokenTexts.countUpTo(length, { entry, model, tokens, text }), then);
  }

  #ask<T>(question: (entry: EndpointEntry) => Promise<T>, then: (answer: T) => void): void {
    const attempt = this.#attempt;
    if (attempt === undefined) return;
    void question(attempt.entry).then((answer) => {
      if (this.#attempt === attempt) this.#reads(() => then(answer));
    });
  }

  /** An endpoint beside the one that answers gets to know. */
  answerFailed(fault: Fault, kept: KeptAnswer | undefined): void {
    this.#ahead?.answerFailed(fault, kept);
  }

  /** Reads no more from the endpoint until the client caught up. */
  pause(): void {
    const attempt = this.#attempt;
    if (attempt === undefined) return;
    attempt.pause();
    this.#exchange.writer.onDrain(() => attempt.resume());
  }

  /** Reads no more of an answer that its client could not take piece by piece, until others have read theirs. */
  #waitForRoom(): void {
    const attempt = this.#attempt;
    if (attempt === undefined || this.#waitsForRoom) return;
    this.#waitsForRoom = true;
    attempt.pause();
    this.#exchange.shared.unread.onRoom(() => {
      this.#waitsForRoom = false;
      attempt.resume();
    });
  }

  /** Looks at the limits of time, and at what is known of the endpoint. */
  sweep(at: Micros): void {
    const { state, writer, arrivedAt, deadlineAt, stream: streams, waits } = this.#exchange;
    if (!isUnderWay(state)) {
      const found = { at, arrivedAt, deadlineAt, streams };
      if (isOverdue(this.#exchange.life, found, waits)) this.#exchange.dispatch(TIMED_OUT);
      return;
    }
    this.#tokens.sweep(at);
    if (this.#standby === undefined && this.#ahead === undefined) {
      this.#standby = this.#standbyOf();
      if (this.#standby !== undefined) this.stages.push(this.#standby.stage);
    }
    this.#standby?.sweep(at);
    const reads = !writer.blocked && !this.#waitsForRoom;
    const quietMicros = this.#signs.sweep(at, reads, this.#tokens.firstAt !== undefined);
    const trouble = this.#signs.trouble(at) ?? this.#ahead?.trouble(at, reads);
    const asked = { at, arrivedAt, deadlineAt, streams, blocked: writer.blocked };
    const { continues } = this.#delivery;
    actOnVerdict(this.#exchange, this.#delivery, {
      ...asked,
      sentAt: this.#signs.sentAt,
      quietMicros,
      trouble,
      continues,
    });
  }

  #standbyOf(): StandbyAttempts | undefined {
    for (const standbyOf of this.#exchange.shared.performers.standbys) {
      const standby = standbyOf(this.#exchange, this);
      if (standby !== undefined) return standby;
    }
    return undefined;
  }

  /** How it went, for the router and the observer. */
  result({ outcome, counts }: Finish): ForwardResult {
    const end = counts === "answer" ? this.#delivery.answer?.counts() : undefined;
    const tokensSeen = counts === "seen" ? this.#tokensOfAll : end?.tokensSeen;
    const { firstAt } = this.#tokens;
    const firstTokenAt = this.#firstTokenAt ?? firstAt;
    if (outcome === "ok") this.#signs.completed(firstAt, nowMicros());
    this.#delivery.answer = undefined;
    this.#ahead?.release();
    const usage = this.#ahead === undefined ? end?.usage : this.#ahead.usageOf(end?.usage);
    return { ...end, outcome, usage, outputTokens: usage?.outputTokens ?? tokensSeen, firstTokenAt };
  }
}

/**
 * An answer in one piece of up to so many bytes waits for nobody's room: the kernel takes it at once, whether its client reads
 * or not. It would wait for seconds while others do not read their long ones.
 */
const SHORT_ANSWER_BYTES = 65_536;

/** Informs router, metrics and log of what became of an attempt. */
function reportAttempt({ shared, deadlineAt, status }: ForwardedRequest, forward: Forward, effect: ReportEffect): void {
  const { counters, observe } = shared;
  switch (effect.kind) {
    case "report-first-token":
      forward.tokens.first(nowMicros());
      break;
    case "report-timeout":
      counters.timeouts++;
      if (nowMicros() > deadlineAt) countUp(counters.deadlines, "sent");
      break;
    case "report-retried":
      counters.retries++;
      observe.retried(effect.fault);
      break;
    case "report-given-up":
      counters.retriesDenied[effect.why]++;
      observe.fault?.(givenUpEvent(forward, effect.fault, effect.why, status));
      break;
    case "report-cut":
      counters.cuts++;
      observe.fault?.(cutEvent(forward, effect.fault, forward.tokensSeen));
      break;
  }
}

/** Writes how a request failed: the endpoint's own error, where one was kept, or one of the gateway's. */
function writeError(
  exchange: ForwardedRequest,
  endpoint: EndpointId,
  { kind, fault }: ErrorEffect,
  { kept, event }: EngineErrors,
): void {
  if (kind === "write-error-event") {
    exchange.writer.write(event ?? errorEvent(exchange.route.dialect, cutRefusal(fault)));
  } else if (kind === "write-error") exchange.answerRefusal(exchange.shared.refusalOf(fault), endpoint);
  else if (kept !== undefined) writeKept(exchange, endpoint, fault, kept);
}

/** Answers a request that no endpoint is left for with the last one's own error as it was. */
function writeKept(exchange: ForwardedRequest, endpoint: string, fault: Fault, kept: KeptAnswer): void {
  const headers = clientHeaders(kept.headers, exchange.ownHeaders(endpoint, reasonOf(fault)), false);
  headers.push("content-length", String(kept.body.length));
  if (fault === "saturated" && kept.headers["retry-after"] === undefined) headers.push("retry-after", "1");
  exchange.writer.whole(kept.status, headers, kept.body);
}

/** Does with an attempt what its limits of time, and what is known of its endpoint, ask for. */
function actOnVerdict(exchange: ForwardedRequest, delivery: Delivery, found: FoundAttempt): void {
  const { at, trouble } = found;
  const verdict = look(exchange.life, found, exchange.waits);
  const fault = faultOfLeaving(verdict, trouble);
  switch (verdict) {
    case "time-out":
      return exchange.dispatch(TIMED_OUT);
    case "stalled":
      return exchange.dispatch(CLIENT_STALLED);
    case "cut":
      return delivery.broke(fault);
    case "move":
      countUp(exchange.shared.counters.moved, trouble?.kind ?? "late");
      return delivery.attemptFailed(fault);
    case "give-up":
      return delivery.attemptFailed(fault);
    case "help":
      return exchange.life.late();
    case "wait":
      if (hidesHeadTooLong(exchange, at - exchange.arrivedAt)) exchange.dispatch(HOLD_OVER);
  }
}

function hidesHeadTooLong({ limits, state }: ForwardedRequest, waited: Micros): boolean {
  const { holdMillis } = limits;
  if (holdMillis === undefined || waited < holdMillis * MICROS_PER_MILLI) return false;
  return state.kind === "holding" && state.carriage === "stream" && !state.shown;
}

/** How a forwarded request went. */
export interface ForwardResult {
  readonly outcome: Outcome;
  readonly usage: Usage | undefined;
  readonly outputTokens: number | undefined;
  readonly firstTokenAt: Micros | undefined;
  /** As of AnswerCounts. */
  readonly responseId?: string | undefined;
}
