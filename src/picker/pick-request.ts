import { randomUUID } from "node:crypto";
import type { Duplex } from "node:stream";
import type { Rejected, Routed } from "#core/input/decision.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { Finish } from "#core/path/path-effect.ts";
import {
  type AnswerBegan,
  ARRIVED,
  attemptFailed,
  BODY_READ,
  CLIENT_LEFT,
  FIRST_BYTES,
  FIRST_TOKEN,
  type PathEvent,
  REROUTED,
  ROUTED,
} from "#core/path/path-event.ts";
import type { PathRouter } from "#core/path/path-router.ts";
import { type PathHost, type PerformedEffect, RequestPath } from "#core/path/request-path.ts";
import type { PathStage } from "#core/path/stage.ts";
import { seenTpotMicros } from "#core/latency/latency-model.ts";
import type { Micros } from "#core/base/units.ts";
import type { AnswerReader } from "#live/answer/answer-reader.ts";
import { ERRORS, type ErrorReason, type Refusal } from "#live/http/errors.ts";
import type { NameSwap } from "#live/answer/name-swap.ts";
import { nowMicros } from "#live/base/clock.ts";
import { cutEvent, passedOnEvent, retriedEvent, turnedAwayEvent } from "#live/log/attempt-events.ts";
import { countUp } from "#live/base/gateway-counters.ts";
import type { AskingShared, AskingRequest } from "#live/routing/ask.ts";
import { givenRequestId } from "#live/http/identity.ts";
import type { BodyRoom } from "#live/http/body-room.ts";
import type { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import type { InFlight, Swept } from "#live/http/in-flight.ts";
import type { GatewayLimits } from "#live/http/limits.ts";
import type { RequestHeaders } from "#live/http/headers.ts";
import type { Route } from "#live/http/route.ts";
import type { CountedPrompt } from "#live/base/decisive.ts";
import type { TokenizedPrompt, Tokenizer } from "#live/tokenizer/text/tokenizer.ts";
import { AttemptSigns, type WatchedEndpoints } from "#live/upstream/connection/attempt-signs.ts";
import { TokenProgress } from "#live/upstream/token-progress.ts";
import type { ObservedEnd } from "./observed-response.ts";
import type { RequestSummary } from "#live/log/request-summary.ts";

/** What all requests of proxies share: with those of the gateway itself, where it is one too. */
export interface PickRequestShared extends AskingShared, WatchedEndpoints {
  readonly directory: EndpointDirectory;
  readonly inFlight: InFlight;
  readonly bodies: BodyRoom;
  readonly sendsOwnHeaders: boolean;
  /** Counts the requests that brought an id, which alone need not be unique. */
  sequence: number;
}

export interface PickRequestOptions {
  readonly shared: PickRequestShared;
  readonly headers: RequestHeaders;
  readonly route: Route;
  /** Endpoints that the proxy allows; any where undefined. */
  readonly subset: readonly EndpointId[] | undefined;
  /** The request is not placed, or failed before its response began. */
  readonly refused: (refused: Refusal) => void;
  readonly defect: () => void;
}

/** What of a request is seen where its response does not come through the picker. */
export interface SeenResponse {
  /** 0 before the response's head. */
  readonly status: number;
  /** Bodies of responses come through: silence is the endpoint's. */
  readonly showsBodies: boolean;
}

const BEGAN: AnswerBegan = { kind: "answer-began", carriage: "through" };
const NOT_SENT: ObservedEnd = { outcome: "refused", fault: undefined, usage: undefined, outputTokens: undefined };

/**
 * A proxy's request as the router, the metrics and the logs know it, from its headers to the end of its response: a third
 * host of the request's path. The proxy carries the bytes and decides on retries, which are a stage of the path.
 */
export class PickRequest implements AskingRequest, Swept, PathHost, PathStage {
  slot = 0;
  readonly shared: PickRequestShared;
  readonly limits: GatewayLimits;
  readonly headers: RequestHeaders;
  readonly route: Route;
  readonly subset: readonly EndpointId[] | undefined;
  readonly requestId: string;
  readonly routeId: string;
  readonly answeredElsewhere = true;
  arrivedAt: Micros = nowMicros();
  queuedMicros: Micros = 0;
  model = "";
  tenant = "";
  stream = false;
  sequences = 1;
  prompt: CountedPrompt = { promptTokens: 0, exact: true };
  answerReader: AnswerReader | undefined;
  nameSwap: NameSwap | undefined;
  rejected: Rejected | undefined;
  refusedFor: ErrorReason | "" = "";
  routed: Routed | undefined;
  /** Where it is now; "" before a decision. */
  endpoint: EndpointId = "";
  tokens: TokenProgress | undefined;
  seen: SeenResponse = { status: 0, showsBodies: true };
  readonly #options: PickRequestOptions;
  readonly #life = new RequestPath(this);
  readonly stages: readonly PathStage[] = [this];
  /** Where it goes with the next effect `send`. */
  #next: { readonly endpoint: EndpointId; readonly at: Micros } | undefined;
  #refusal: Refusal | undefined;
  #end: ObservedEnd = NOT_SENT;
  #signs: AttemptSigns | undefined;
  #tokenizer: Tokenizer | undefined;
  #tokenized: TokenizedPrompt | undefined;
  #bodyBytes = 0;

  constructor(options: PickRequestOptions) {
    const { shared, headers, route, subset } = options;
    this.#options = options;
    this.shared = shared;
    this.limits = shared.limits;
    this.headers = headers;
    this.route = route;
    this.subset = subset;
    const given = givenRequestId(headers);
    this.requestId = given === "" ? randomUUID() : given;
    this.routeId = given === "" ? this.requestId : `${given}.${(shared.sequence++).toString(36)}`;
    shared.inFlight.add(this);
  }

  /** Counts bytes of the body among those held, until `releaseBody`; false where there is no room for them. */
  holdBody(bytes: number): boolean {
    if (!this.shared.bodies.take(bytes, PROXY)) return false;
    this.#bodyBytes += bytes;
    return true;
  }

  releaseBody(): void {
    this.shared.bodies.give(this.#bodyBytes);
    this.#bodyBytes = 0;
  }

  expectCount(tokenizer: Tokenizer, tokenized: TokenizedPrompt): void {
    this.#tokenizer = tokenizer;
    this.#tokenized = tokenized;
  }

  get router(): PathRouter {
    return this.shared.router;
  }
  get over(): boolean {
    const { kind } = this.#life.state;
    return kind === "ended" || kind === "closed";
  }
  /** As far as the proxy shows them: the chosen endpoint, and the one that it served from instead. */
  get attempts(): number {
    return this.#life.state.attempts;
  }

  arrived(): void {
    this.#life.dispatch(BODY_READ);
    this.#life.dispatch(ARRIVED);
  }

  /** The decision names its endpoint. Where another one computes the prompt before, the proxy's side sees to that. */
  took(decision: Routed): void {
    this.routed = decision;
    this.#next = decision;
    this.#life.dispatch(ROUTED);
  }

  /** The proxy went down the list: the chosen endpoint took no connection, or answered what the proxy tries again for. */
  movedTo(endpoint: EndpointId): void {
    this.#next = { endpoint, at: nowMicros() };
    this.#life.dispatch(attemptFailed("connect"));
  }

  /** The first token passed. */
  passed(): void {
    this.#life.dispatch(BEGAN);
    this.#life.dispatch(FIRST_TOKEN);
    this.#life.dispatch(FIRST_BYTES);
  }

  /** Who goes on with a request that failed is the proxy's to decide; the router gets to know. */
  takesOver(fault: Fault): PathEvent {
    const { router } = this.shared;
    const { routeId: requestId } = this;
    const at = nowMicros();
    router.accept({ kind: "attempt-failed", at, requestId, fault });
    if (this.#next === undefined) return { kind: "denied", why: "no-endpoint" };
    const { endpoint } = this.#next;
    router.accept({ kind: "request-moved", at, requestId, endpoint });
    return REROUTED;
  }

  faulted(fault: Fault): void {
    countUp(this.shared.counters.faults, fault);
  }

  /** No endpoint is named by the router once a proxy has the request. */
  retried(): void {}

  threw(error: unknown): void {
    this.shared.counters.internalErrors++;
    this.shared.observe.bug?.(error);
  }

  perform(effect: PerformedEffect): undefined {
    const { counters, observe } = this.shared;
    switch (effect.kind) {
      case "send":
        if (this.#next !== undefined) this.#at(this.#next.endpoint, this.#next.at);
        this.#next = undefined;
        break;
      case "write-refusal":
        if (this.#refusal !== undefined) this.#options.refused(this.#refusal);
        break;
      case "report-first-token":
        this.tokens?.first(nowMicros());
        break;
      case "report-retried":
        this.answerReader?.reset();
        observe.fault?.(retriedEvent(this, effect.fault, this.#next?.endpoint ?? ""));
        break;
      case "report-given-up":
        observe.fault?.(passedOnEvent(this, effect.fault));
        break;
      case "report-cut":
        counters.cuts++;
        observe.fault?.(cutEvent(this, effect.fault, this.tokens?.seen));
        break;
      case "report-turned-away":
        observe.fault?.(turnedAwayEvent(this, effect.afterFault, this.#refusal?.message ?? "", this.status));
        break;
      case "report-client-left":
        counters.clientAborts++;
        break;
      case "forget":
        this.shared.inFlight.remove(this);
        break;
      case "finish":
        this.#finish(effect);
        break;
      default:
      // The proxy writes and releases.
    }
    return undefined;
  }

  /** Of the response as it was seen, or of the error that the proxy is to answer with; 0 without either. */
  get status(): number {
    return this.#refusal === undefined ? this.seen.status : ERRORS[this.#refusal.reason].status;
  }

  /** A sign of the endpoint. */
  alive(): void {
    this.#signs?.alive();
  }

  refuse(refused: Refusal): void {
    if (this.over) return;
    this.refusedFor = refused.reason;
    this.#refusal = refused;
    countUp(this.shared.counters.refused, refused.reason);
    this.#life.dispatch({ kind: "refused", outcome: "refused" });
    this.#life.dispatch(CLIENT_LEFT);
  }

  bug(error: unknown): void {
    this.threw(error);
    this.#options.defect();
  }

  /** Its response is over, or its proxy left. */
  end(end: ObservedEnd): void {
    if (this.over) return;
    this.#end = end;
    const life = this.#life;
    const { outcome, fault } = end;
    const hasBegun = life.state.kind === "passing";
    if (fault !== undefined && hasBegun) life.dispatch({ kind: "upstream-broke", fault, continues: false });
    else if (fault !== undefined) life.dispatch(attemptFailed(fault));
    else if (outcome === "ok" || outcome === "refused") {
      if (!hasBegun) life.dispatch(BEGAN);
      life.dispatch({ kind: "answer-ended", outcome, promisesMark: false });
    }
    life.dispatch(CLIENT_LEFT);
  }

  /** The one place where a request ends: informs the router, and then the observer. */
  #finish({ outcome, known }: Finish): void {
    const { shared } = this;
    const { usage, outputTokens, responseId } = this.#end;
    const at = nowMicros();
    if (known) {
      const reported = outcome === "ok" || outcome === "aborted" ? this.answerReader?.ended(this.routeId, usage) : {};
      shared.router.accept({
        kind: "request-finished",
        at,
        requestId: this.routeId,
        outcome,
        promptTokens: usage?.promptTokens,
        cachedTokens: usage?.cachedTokens,
        outputTokens,
        ...reported,
      });
    }
    if (outcome === "ok" && this.seen.showsBodies) this.#signs?.completed(this.tokens?.firstAt, at);
    if (responseId !== undefined) shared.responses.made(responseId, this.endpoint);
    this.releaseBody();
    if (usage?.promptTokens !== undefined && this.#tokenized !== undefined) {
      this.#tokenizer?.learn(this.model, this.#tokenized, usage.promptTokens);
    }
    shared.observe.finished(pickSummary(this, at, { ...this.#end, outcome }));
  }

  sweep(at: Micros): void {
    if (this.routed === undefined || this.over) return;
    this.tokens?.sweep(at);
    if (this.seen.showsBodies) this.#signs?.sweep(at, true);
  }

  answersOn(_socket: Duplex): boolean {
    return false;
  }

  #at(endpoint: EndpointId, since: Micros): void {
    const { router, counters } = this.shared;
    this.endpoint = endpoint;
    this.#signs = new AttemptSigns(this.shared, endpoint, since, this.stream);
    this.tokens = new TokenProgress({ router, limits: this.limits, counters, requestId: this.routeId });
  }
}

/** Whose bodies come through a proxy is not known here. */
export const PROXY = { network: "" };

/** A request that is over since `at`, for metrics and logs, as the gateway reports its own. */
function pickSummary(pick: PickRequest, at: Micros, { outcome, usage, outputTokens }: ObservedEnd): RequestSummary {
  const { routed } = pick;
  const firstAt = pick.tokens?.firstAt;
  const ttftEnd = firstAt ?? (outcome === "ok" && !pick.stream ? at : undefined);
  return {
    requestId: pick.requestId,
    method: pick.headers.get(":method"),
    route: pick.route.pattern,
    model: pick.model,
    tenant: pick.tenant,
    endpoint: pick.endpoint,
    profile: routed?.profile ?? "",
    reason: pick.refusedFor === "" ? (routed?.reason ?? "") : pick.refusedFor,
    status: pick.status,
    outcome,
    stream: pick.stream,
    attempts: pick.attempts,
    queuedMicros: pick.queuedMicros,
    ttftMicros: ttftEnd === undefined || routed === undefined ? undefined : ttftEnd - routed.at,
    tpotMicros: outcome === "ok" ? seenTpotMicros(firstAt, at, outputTokens, pick.sequences) : undefined,
    e2eMicros: at - pick.arrivedAt,
    promptTokens: usage?.promptTokens,
    cachedTokens: usage?.cachedTokens,
    outputTokens,
    hitTokens: routed?.hitTokens ?? 0,
  };
}
