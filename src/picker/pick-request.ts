import { randomUUID } from "node:crypto";
import type { Duplex } from "node:stream";
import type { Rejected, Routed } from "#core/input/decision.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { Micros } from "#core/base/units.ts";
import type { AnswerReader } from "#live/answer/answer-reader.ts";
import type { ErrorReason, Refusal } from "#live/answer/errors.ts";
import type { NameSwap } from "#live/answer/name-swap.ts";
import { nowMicros } from "#live/clock.ts";
import type { GatewayParts } from "#live/gateway-parts.ts";
import { cutEvent, passedOnEvent, retriedEvent } from "#live/log/attempt-events.ts";
import { countUp } from "#live/metrics/gateway-counters.ts";
import type { AskingRequest } from "#live/request/ask.ts";
import { givenRequestId } from "#live/request/identity.ts";
import type { Swept } from "#live/request/in-flight.ts";
import type { GatewayLimits } from "#live/request/limits.ts";
import type { RequestHeaders } from "#live/request/request-headers.ts";
import type { Route } from "#live/request/route.ts";
import type { CountedPrompt } from "#live/status/decisive.ts";
import type { TokenizedPrompt, Tokenizer } from "#live/tokenizer/tokenizer.ts";
import { AttemptSigns } from "#live/upstream/attempt-signs.ts";
import { TokenProgress } from "#live/upstream/token-progress.ts";
import type { ObservedEnd } from "./observed-response.ts";
import { pickSummary } from "./pick-summary.ts";

export interface PickRequestOptions {
  readonly context: GatewayParts;
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

/** A proxy's request as the router, the metrics and the logs know it, from its headers to the end of its response. */
export class PickRequest implements AskingRequest, Swept {
  slot = 0;
  readonly context: GatewayParts;
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
  prompt: CountedPrompt = { promptTokens: 0, exact: true };
  answerReader: AnswerReader | undefined;
  nameSwap: NameSwap | undefined;
  rejected: Rejected | undefined;
  refusedFor: ErrorReason | "" = "";
  over = false;
  routed: Routed | undefined;
  /** As far as the proxy shows them: the chosen endpoint, and the one that it served from instead. */
  attempts = 0;
  /** Where it is now; "" before a decision. */
  endpoint: EndpointId = "";
  tokens: TokenProgress | undefined;
  seen: SeenResponse = { status: 0, showsBodies: true };
  readonly #options: PickRequestOptions;
  #known = false;
  #signs: AttemptSigns | undefined;
  #tokenizer: Tokenizer | undefined;
  #tokenized: TokenizedPrompt | undefined;
  #bodyBytes = 0;

  constructor(options: PickRequestOptions) {
    const { context, headers, route, subset } = options;
    this.#options = options;
    this.context = context;
    this.limits = context.limits;
    this.headers = headers;
    this.route = route;
    this.subset = subset;
    const given = givenRequestId(headers);
    this.requestId = given === "" ? randomUUID() : given;
    this.routeId = given === "" ? this.requestId : `${given}.${(context.sequence++).toString(36)}`;
    context.inFlight.add(this);
  }

  /** Counts bytes of the body among those held, until `releaseBody`; false where there is no room for them. */
  holdBody(bytes: number): boolean {
    if (!this.context.bodies.take(bytes, PROXY)) return false;
    this.#bodyBytes += bytes;
    return true;
  }

  releaseBody(): void {
    this.context.bodies.give(this.#bodyBytes);
    this.#bodyBytes = 0;
  }

  expectCount(tokenizer: Tokenizer, tokenized: TokenizedPrompt): void {
    this.#tokenizer = tokenizer;
    this.#tokenized = tokenized;
  }

  arrived(): void {
    this.#known = true;
  }

  /** The decision names its endpoint. */
  took(decision: Routed): void {
    this.routed = decision;
    this.attempts = 1;
    this.#at(decision.endpoint, decision.at);
  }

  /** The proxy went down the list: the chosen endpoint took no connection, or answered what the proxy tries again for. */
  movedTo(endpoint: EndpointId): void {
    const { router, counters } = this.context;
    const at = nowMicros();
    countUp(counters.faults, "connect");
    this.context.observe.fault?.(retriedEvent(this, "connect", endpoint));
    this.attempts++;
    router.accept({ kind: "attempt-failed", at, requestId: this.routeId, fault: "connect" });
    router.accept({ kind: "request-moved", at, requestId: this.routeId, endpoint });
    this.answerReader?.reset();
    this.#at(endpoint, at);
  }

  /** A sign of the endpoint. */
  alive(): void {
    this.#signs?.alive();
  }

  refuse(refused: Refusal): void {
    if (this.over) return;
    this.refusedFor = refused.reason;
    countUp(this.context.counters.refused, refused.reason);
    this.#options.refused(refused);
    this.end({ outcome: "refused", fault: undefined, usage: undefined, outputTokens: undefined });
  }

  bug(error: unknown): void {
    this.context.counters.internalErrors++;
    this.context.observe.bug?.(error);
    this.#options.defect();
  }

  /** The one place where a request ends: informs the router, and then the observer. */
  end(end: ObservedEnd): void {
    if (this.over) return;
    this.over = true;
    const { context } = this;
    const { outcome, fault, usage, outputTokens } = end;
    const at = nowMicros();
    if (this.#known) {
      if (fault !== undefined) this.#failed(fault, at);
      const reported = outcome === "ok" || outcome === "aborted" ? this.answerReader?.ended(this.routeId, usage) : {};
      context.router.accept({
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
    if (end.responseId !== undefined) context.responses.made(end.responseId, this.endpoint);
    if (outcome === "aborted") context.counters.clientAborts++;
    this.releaseBody();
    context.inFlight.remove(this);
    if (usage?.promptTokens !== undefined && this.#tokenized !== undefined) {
      this.#tokenizer?.learn(this.model, this.#tokenized, usage.promptTokens);
    }
    context.observe.finished(pickSummary(this, at, end));
  }

  sweep(at: Micros): void {
    if (this.routed === undefined || this.over) return;
    this.tokens?.sweep(at);
    if (this.seen.showsBodies) this.#signs?.sweep(at, true);
  }

  answersOn(_socket: Duplex): boolean {
    return false;
  }

  /** Before its first token the attempt alone failed; after it, the answer broke, which its end reports. */
  #failed(fault: Fault, at: Micros): void {
    const { counters, observe, router } = this.context;
    if (this.tokens?.firstAt !== undefined) {
      counters.cuts++;
      observe.fault?.(cutEvent(this, fault, this.tokens.seen));
      return;
    }
    countUp(counters.faults, fault);
    observe.fault?.(passedOnEvent(this, fault));
    router.accept({ kind: "attempt-failed", at, requestId: this.routeId, fault });
  }

  #at(endpoint: EndpointId, since: Micros): void {
    const { router, counters } = this.context;
    this.endpoint = endpoint;
    this.#signs = new AttemptSigns(this, endpoint, since);
    this.tokens = new TokenProgress({ router, limits: this.limits, counters, requestId: this.routeId });
  }
}

/** Whose bodies come through a proxy is not known here. */
const PROXY = { network: "" };
