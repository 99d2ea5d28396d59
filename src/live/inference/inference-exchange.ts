import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Rejected, Routed } from "#core/input/decision.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import { seenTpotMicros } from "#core/latency/latency-model.ts";
import { NO_STAGES, type PathStage } from "#core/path/stage.ts";
import type { WaitLimits } from "#core/path/wait-verdict.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";
import type { NameSwap } from "../answer/name-swap.ts";
import type { AnswerJudge } from "../answer/answer-judge.ts";
import type { AnswerReader, AnswerReport } from "../answer/answer-reader.ts";
import { ClientWriter } from "../answer/client-writer.ts";
import { nowMicros } from "../base/clock.ts";
import { ERRORS, type ErrorReason, type Refusal, errorBody, errorHeaders, refusal } from "../http/errors.ts";
import type { Forward, ForwardResult } from "../upstream/forward.ts";
import { type OwnHeaders, pushOwn, RequestHeaders } from "../http/headers.ts";
import { countUp } from "../base/gateway-counters.ts";
import type { RequestRouter } from "../routing/request-router.ts";
import type { AskingShared, AskingRequest } from "../routing/ask.ts";
import type { ForwardedRequest, ForwardShared } from "../upstream/forwarded-request.ts";
import type { EndpointDirectory } from "../endpoints/endpoint-directory.ts";
import { profileText, type CountedPrompt } from "../base/decisive.ts";
import { givenRequestId } from "../http/identity.ts";
import type { ArrivingBody, BodyRoom } from "../http/body-room.ts";
import { clientNetwork } from "../http/client-network.ts";
import { passOverUnread } from "../http/unread-body.ts";
import type { Cors } from "../http/cors.ts";
import type { InFlight, Swept } from "../http/in-flight.ts";
import type { GatewayLimits } from "../http/limits.ts";
import type { RequestSummary } from "../log/request-summary.ts";
import { turnedAwayEvent } from "../log/attempt-events.ts";
import { stalledEvent } from "../log/stalled-event.ts";
import type { StreamKeeper } from "../answer/stream-keeper.ts";
import type { RequestTarget } from "../request/request-target.ts";
import type { Finish } from "#core/path/path-effect.ts";
import { ARRIVED, CLIENT_LEFT, CLIENT_STALLED, DEFECT, type PathEvent } from "#core/path/path-event.ts";
import type { PathState } from "#core/path/path-state.ts";
import { type PathHost, type PerformedEffect, RequestPath } from "#core/path/request-path.ts";
import type { Route } from "../http/route.ts";
import type { TokenizedPrompt, Tokenizer } from "../tokenizer/text/tokenizer.ts";

/** What all exchanges share. */
export type ExchangeShared = AskingShared &
  ForwardShared & {
    readonly directory: EndpointDirectory;
    /** How long is waited for endpoints, of the limits in force. */
    readonly waits: WaitLimits;
    /** Requests between their head and their last byte. */
    readonly inFlight: InFlight;
    readonly bodies: BodyRoom;
    /** Headers that state how long a client waits, in lower case; the first that it sent counts. */
    readonly timeoutHeaders: readonly string[];
    /** Answers carry x-gnomon-* headers. */
    readonly sendsOwnHeaders: boolean;
    /** What pages in browsers may do; undefined leaves that to the engines. */
    readonly cors: Cors | undefined;
    /** Counts the requests that brought an id, which alone need not be unique. */
    sequence: number;
  };

/**
 * One inference request and its answer, from the request's head to the answer's last byte. `state` is where it stands; this
 * class carries out the effects that need no endpoint, and `Forward` all others.
 */
export class InferenceExchange implements Swept, PathHost, AskingRequest, ForwardedRequest {
  readonly shared: ExchangeShared;
  /** As they were when it came: a change of the configuration cuts nothing that is under way. */
  readonly limits: GatewayLimits;
  readonly waits: WaitLimits;
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
  /** How long its client waits, and until when; undefined and Infinity where it stated nothing. */
  timeoutMicros: Micros | undefined;
  deadlineAt: Micros = Infinity;
  model = "";
  tenant = "";
  stream = false;
  sequences = 1;
  /** Where the answer's tokens can be found out and continue the prompt's blocks. */
  answerReader: AnswerReader | undefined;
  judge: AnswerJudge | undefined;
  nameSwap: NameSwap | undefined;
  /** What is kept of a stream so that it can go on elsewhere, or why nothing is. */
  keeper: StreamKeeper | undefined;
  /** As the router knows its length. */
  prompt: CountedPrompt = { promptTokens: 0, exact: true };
  rejected: Rejected | undefined;
  queuedMicros: Micros = 0;
  readonly life: RequestPath = new RequestPath(this);
  #forward: Forward | undefined;
  #bodyBytes = 0;
  #arriving: ArrivingBody | undefined;
  #overAt: Micros = 0;
  /** Reason of the gateway's own error; "" where it sent none. */
  refusedFor: ErrorReason | "" = "";
  /** The error that the gateway is to answer with. */
  #refusal: Refusal | undefined;
  #tokenizer: Tokenizer | undefined;
  #tokenized: TokenizedPrompt | undefined;
  readonly #response: ServerResponse;

  constructor(shared: ExchangeShared, incoming: IncomingMessage, response: ServerResponse, target: RequestTarget) {
    this.shared = shared;
    this.limits = shared.limits;
    this.waits = shared.waits;
    this.incoming = incoming;
    this.#response = response;
    this.writer = new ClientWriter(response);
    this.route = target.route;
    this.path = target.path;
    this.headers = new RequestHeaders(incoming.rawHeaders);
    const given = givenRequestId(this.headers);
    this.requestId = given === "" ? randomUUID() : given;
    this.routeId = given === "" ? this.requestId : `${given}.${(shared.sequence++).toString(36)}`;
    shared.inFlight.add(this);
    response.on("close", () => this.dispatch(CLIENT_LEFT));
  }

  get router(): RequestRouter {
    return this.shared.router;
  }
  get stages(): readonly PathStage[] {
    return this.#forward?.stages ?? NO_STAGES;
  }

  faulted(fault: Fault): void {
    countUp(this.shared.counters.faults, fault);
  }

  retried(decision: Routed, fault: Fault): void {
    this.#forward?.retried(decision, fault);
  }

  get state(): PathState {
    return this.life.state;
  }
  /** The client left, or the answer is complete. */
  get over(): boolean {
    const { kind } = this.life.state;
    return kind === "ended" || kind === "closed";
  }

  dispatch(event: PathEvent): void {
    this.life.dispatch(event);
  }

  /** Counts bytes of the body among those held, until the exchange is over; false where there is no room for them. */
  holdBody(bytes: number): boolean {
    if (this.over) return false;
    // Most bodies come in one piece, and are not looked after.
    if (this.#bodyBytes > 0) this.#watchBody(nowMicros());
    if (!this.shared.bodies.take(bytes, this, this.#arriving)) return false;
    this.#bodyBytes += bytes;
    return true;
  }

  /** A piece of the answer that does not wait for its client was written. */
  written(): void {
    const { socket } = this.incoming;
    if (socket.writableLength > 0) this.shared.unread.look(socket, nowMicros());
  }

  /** All of the body came, or no more of it is wanted. */
  bodyCame(): void {
    if (this.#arriving !== undefined) this.shared.bodies.leave(this.#arriving);
    this.#arriving = undefined;
  }

  /** Whose request it is, by its connection. */
  get network(): string {
    return clientNetwork(this.incoming.socket.remoteAddress);
  }

  #watchBody(at: Micros): ArrivingBody {
    this.#arriving ??= this.shared.bodies.watch(this.network, this.#bodyBytes, at, (why) => {
      countUp(this.shared.counters.bodiesCut, why);
      this.refuse(SLOW_BODY);
    });
    return this.#arriving;
  }

  /** Once the engine has reported its own count of the prompt, the tokenizer gets it. */
  expectCount(tokenizer: Tokenizer, tokenized: TokenizedPrompt): void {
    this.#tokenizer = tokenizer;
    this.#tokenized = tokenized;
  }

  /** The router is about to be informed of the request's arrival; from here on it must be informed of its end. */
  arrived(): void {
    this.dispatch(ARRIVED);
  }

  forward(forward: Forward): void {
    this.#forward = forward;
    this.life.routed(forward.routed);
  }

  /** Answers with an error of the gateway's own and ends the exchange. */
  refuse(refused: Refusal): void {
    this.#refusal = refused;
    this.dispatch({ kind: "refused", outcome: refused.reason === "deadline" ? "timeout" : "refused" });
  }

  perform(effect: PerformedEffect): PathEvent | undefined {
    switch (effect.kind) {
      case "write-refusal":
        this.answerRefusal(this.#refusal ?? INTERNAL, "");
        break;
      case "end-client":
        this.writer.end();
        break;
      case "destroy-client":
        this.writer.destroy();
        break;
      case "report-client-left":
        this.shared.counters.clientAborts++;
        break;
      case "report-client-stalled":
        this.shared.counters.clientStalls++;
        this.shared.observe.fault?.(stalledEvent(this.requestId, this.#forward?.endpoint ?? ""));
        break;
      case "report-turned-away":
        this.#turnedAway(effect.afterFault);
        break;
      case "forget":
        this.shared.inFlight.remove(this);
        break;
      case "finish":
        this.#finish(effect);
        break;
      case "report-illegal":
        this.threw(new Error(`the event ${effect.event} has no meaning for a request that is ${effect.state}`));
        break;
      default:
        return this.#forward?.perform(effect);
    }
    return undefined;
  }

  threw(error: unknown): void {
    this.#refusal = INTERNAL;
    this.shared.counters.internalErrors++;
    this.shared.observe.bug?.(error);
  }

  #turnedAway(fault: Fault | undefined): void {
    const refused = this.#refusal ?? INTERNAL;
    // Behind a head the client gets no error.
    if (this.refusedFor === "") this.#countRefused(refused);
    const { requestId, state, status } = this;
    const subject = { requestId, endpoint: this.#forward?.endpoint ?? "", attempts: state.attempts };
    this.shared.observe.fault?.(turnedAwayEvent(subject, fault, refused.message, status));
  }

  #countRefused({ reason }: Refusal): void {
    countUp(this.shared.counters.refused, reason);
    this.refusedFor = reason;
  }

  answerRefusal(refused: Refusal, endpoint: string): void {
    this.#countRefused(refused);
    const body = Buffer.from(errorBody(refused, this.route.dialect));
    const headers = errorHeaders(refused, body.length, this.shared.sendsOwnHeaders);
    pushOwn(headers, this.ownHeaders(endpoint, ""));
    if (!this.incoming.complete) {
      headers.push("connection", "close");
      passOverUnread(this.incoming);
    }
    this.writer.whole(ERRORS[refused.reason].status, headers, body);
  }

  ownHeaders(endpoint: string, reason: string): OwnHeaders {
    const routed = this.#forward?.routed;
    const hitTokens = heldTokens(routed);
    const profile = profileText(routed ?? this.rejected);
    const { sendsOwnHeaders: sendsOwn, cors: answers } = this.shared;
    const cors = answers?.of(this.headers.get("origin"));
    const prefill = routed?.prefill?.endpoint;
    return { requestId: this.requestId, endpoint, prefill, reason, profile, hitTokens, sendsOwn, cors };
  }

  /** Of the answer's head; 0 before it is sent. */
  get status(): number {
    return this.#response.headersSent ? this.#response.statusCode : 0;
  }

  /** The one place where a request ends: informs the router, and then the observer. */
  #finish(effect: Finish): void {
    const { shared } = this;
    const result = this.#forward?.result(effect) ?? { ...UNSENT, outcome: effect.outcome };
    const at = nowMicros();
    this.#overAt = at;
    if (effect.known) {
      this.router.accept({
        kind: "request-finished",
        at,
        requestId: this.routeId,
        outcome: result.outcome,
        promptTokens: result.usage?.promptTokens,
        cachedTokens: result.usage?.cachedTokens,
        outputTokens: result.outputTokens,
        ...this.#answer(result),
      });
    }
    if (result.responseId !== undefined) shared.responses.made(result.responseId, this.#forward?.endpoint ?? "");
    this.keeper?.close();
    this.judge?.close();
    this.bodyCame();
    shared.bodies.give(this.#bodyBytes);
    const counted = result.usage?.promptTokens;
    if (counted !== undefined && this.#tokenized) this.#tokenizer?.learn(this.model, this.#tokenized, counted);
    shared.observe.finished(summarize(this, this.#forward, at, result));
  }

  /** What an engine computed before its client left stays in its cache; one that broke may have lost it. */
  #answer({ outcome, usage }: ForwardResult): AnswerReport | undefined {
    if (outcome !== "ok" && outcome !== "aborted") return undefined;
    return this.keeper?.report(usage) ?? this.answerReader?.ended(this.routeId, usage);
  }

  answersOn(socket: Duplex): boolean {
    return this.incoming.socket === socket && (this.incoming.complete || this.writer.headSent);
  }

  /**
   * Its client learns that the gateway cannot wait for it any more: by 503 where it has no byte, else by an error event,
   * or a broken connection where the answer is none of events.
   */
  dismiss(): void {
    if (this.over) return;
    if (this.state.kind === "passing") this.dispatch({ kind: "upstream-broke", fault: "draining", continues: false });
    else this.refuse(DISMISSED);
  }

  sweep(at: Micros): void {
    const { bodies, hangs } = this.shared;
    if (this.state.kind === "reading") bodies.look(this.#watchBody(at), at, hangs.stoodStillUntil);
    if (!this.over && this.#forward === undefined) this.#waitOut(at);
    else if (!this.over) this.#sweepForward(at);
    else if (at - this.#overAt > this.limits.writeStallMillisMax * MICROS_PER_MILLI) this.dispatch(CLIENT_STALLED);
  }

  /** Not sent to any endpoint yet: it ends once its client's deadline, or the limit of all requests, passed. */
  #waitOut(at: Micros): void {
    const { shared, deadlineAt, openedAt, state, waits } = this;
    if (at <= Math.min(deadlineAt, openedAt + waits.totalMicrosMax)) return;
    if (at > deadlineAt) countUp(shared.counters.deadlines, state.kind);
    this.refuse(shared.refusalOf("timeout"));
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
    this.threw(error);
    this.dispatch(DEFECT);
  }
}

const INTERNAL = refusal("internal", "The gateway failed on this request.");
const DISMISSED = refusal("draining", "The gateway is shutting down; another one may serve this request.");
const SLOW_BODY = refusal("slow-request", "The request's body came too slowly.");
const UNSENT = { usage: undefined, outputTokens: undefined, firstTokenAt: undefined };

/** A request that is over since `at`, for metrics and logs; without `forward` it was never sent anywhere. */
function summarize(
  exchange: InferenceExchange,
  forward: Forward | undefined,
  at: Micros,
  { outcome, usage, outputTokens, firstTokenAt }: ForwardResult,
): RequestSummary {
  const whole = outcome === "ok" && firstTokenAt === undefined ? at : undefined;
  // What its judge held back came later.
  const ttftEnd = firstTokenAt === undefined ? whole : Math.max(firstTokenAt, exchange.judge?.decidedAt ?? 0);
  return {
    requestId: exchange.requestId,
    routeId: exchange.routeId,
    method: exchange.incoming.method ?? "",
    route: exchange.route.pattern,
    model: exchange.model,
    tenant: exchange.tenant,
    endpoint: forward?.endpoint ?? "",
    profile: forward?.routed.profile ?? "",
    reason: exchange.refusedFor === "" ? (forward?.routed.reason ?? "") : exchange.refusedFor,
    status: exchange.status,
    outcome,
    stream: exchange.stream,
    attempts: exchange.state.attempts,
    ttftMicros: ttftEnd === undefined || forward === undefined ? undefined : ttftEnd - forward.decidedAt,
    tpotMicros: outcome === "ok" ? seenTpotMicros(firstTokenAt, at, outputTokens, exchange.sequences) : undefined,
    queuedMicros: exchange.queuedMicros,
    e2eMicros: at - exchange.arrivedAt,
    promptTokens: usage?.promptTokens,
    cachedTokens: usage?.cachedTokens,
    outputTokens,
    hitTokens: heldTokens(forward?.routed),
    ...(forward?.routed.prefill && { prefillEndpoint: forward.routed.prefill.endpoint }),
  };
}

/** Prompt tokens that are believed to be held where the prompt is computed; 0 where nothing was decided. */
function heldTokens(routed: Routed | undefined): number {
  const first = routed?.prefill ?? routed;
  return first?.heldTokens ?? first?.hitTokens ?? 0;
}
