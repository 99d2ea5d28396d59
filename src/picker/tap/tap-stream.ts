import type { Routed } from "#core/input/decision.ts";
import { type AnswerHeaders, RequestHeaders } from "#live/http/headers.ts";
import { refusal } from "#live/http/errors.ts";
import { askBody, askUnread } from "#live/routing/ask.ts";
import { apart } from "../apart.ts";
import { ObservedResponse } from "../observed-response.ts";
import type { PickedPath } from "../picked-path.ts";
import { PickRequest, type PickRequestShared, PROXY } from "../pick-request.ts";
import type { SendReplies } from "../pick-stream.ts";
import { unchanged } from "../replies.ts";
import { BODY_MODE, type BodyModes, type ProcessingRequest, type ProxiedBody, type ProxiedHeaders } from "../wire.ts";

/** What all streams of a proxy that is observed share. */
export interface TapStreamShared {
  /** Of a gateway that refuses nothing and decides nothing. */
  readonly gateway: PickRequestShared;
  readonly pathOf: (target: string) => PickedPath;
  /** The head of an answer came, from `upstream` where the proxy states that. */
  readonly answered: (requestId: string, headers: AnswerHeaders, upstream: string | undefined) => void;
  /** Requests that were not observed, since as many were in flight as may be. */
  readonly counts: { unobserved: number };
}

/**
 * One HTTP request of a proxy and its response, which somebody else decides on: what passes is read, and goes on before it is.
 * Nothing here changes, delays or refuses it.
 */
export class TapStream {
  readonly #shared: TapStreamShared;
  readonly #replies: SendReplies;
  #modes: BodyModes = { request: BODY_MODE.streamed, response: BODY_MODE.streamed };
  #request: PickRequest | undefined;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #asked = false;
  /** What came of the response while the prompt's tokens were not known; undefined once they are. */
  #early: ProcessingRequest[] | undefined = [];
  #earlyBytes = 0;
  /** The proxy closed the stream meanwhile. */
  #isGone = false;
  /** Some of the response was not kept: its status and end are all that is known. */
  #lacks = false;
  #response: ObservedResponse | undefined;

  constructor(shared: TapStreamShared, replies: SendReplies) {
    this.#shared = shared;
    this.#replies = replies;
  }

  message(message: ProcessingRequest): void {
    if (message.modes !== undefined) this.#modes = message.modes;
    if (!message.isObserved) this.#replies(unchanged(message, this.#modes));
    try {
      this.#take(message);
    } catch (error) {
      this.#request?.bug(error);
    }
  }

  /** The proxy closed the stream: the exchange is over, or was broken off. */
  closed(): void {
    const request = this.#request;
    if (request === undefined) return;
    if (this.#early !== undefined && this.#asked) this.#isGone = true;
    else this.#gone(request);
  }

  #take(message: ProcessingRequest): void {
    if (message.requestHeaders !== undefined) return this.#requestHeaders(message.requestHeaders);
    const request = this.#request;
    if (request === undefined || request.over) return;
    if (message.requestBody !== undefined) this.#requestBody(request, message.requestBody);
    else if (message.requestTrailers) this.#ask(request);
    else if (this.#early === undefined) this.#ofResponse(request, message);
    else {
      // It was answered before its body was there, or read.
      if (!this.#asked) this.#askUnread(request, NOT_WHOLE);
      this.#wait(request, message);
    }
  }

  #requestHeaders({ flat, ends }: ProxiedHeaders): void {
    if (this.#request !== undefined) return;
    const { gateway, pathOf, counts } = this.#shared;
    const headers = new RequestHeaders(flat);
    const { route, takesBody } = pathOf(headers.get(":path"));
    if (!takesBody || headers.get(":method") !== "POST") return;
    if (gateway.inFlight.size >= gateway.limits.requestsInFlightMax) return void counts.unobserved++;
    const request = new PickRequest({
      shared: gateway,
      headers,
      route,
      subset: undefined,
      refused: () => {},
      defect: () => this.#finish(request, false),
    });
    this.#request = request;
    request.seen = { status: 0, showsBodies: this.#modes.response !== BODY_MODE.none };
    if (ends) this.#ask(request);
    else if (this.#modes.request === BODY_MODE.none) this.#askUnread(request, NOT_SHOWN);
  }

  #requestBody(request: PickRequest, { body, ends }: ProxiedBody): void {
    if (this.#asked) return;
    this.#bytes += body.length;
    if (this.#bytes > request.limits.bodyBytesMax) return this.#askUnread(request, TOO_LARGE);
    if (!request.holdBody(body.length)) return this.#askUnread(request, NO_ROOM);
    this.#chunks.push(apart(body));
    if (ends) this.#ask(request);
  }

  #ask(request: PickRequest): void {
    if (this.#asked) return;
    this.#asked = true;
    const body = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
    this.#chunks = [];
    askBody(request, body, (decision) => this.#placed(request, decision));
  }

  /** Its body is not known here; the request is recorded without a prompt. */
  #askUnread(request: PickRequest, why: typeof TOO_LARGE): void {
    this.#asked = true;
    this.#chunks = [];
    request.releaseBody();
    askUnread(request, why, (decision) => this.#placed(request, decision));
  }

  /** The router has the request, and what came of its response until now follows. */
  #placed(request: PickRequest, decision: Routed): void {
    request.releaseBody();
    if (!request.over) request.took(decision);
    const early = this.#early ?? [];
    this.#early = undefined;
    this.#shared.gateway.bodies.give(this.#earlyBytes);
    for (const message of early) this.#ofResponse(request, message);
    if (this.#isGone && !request.over) this.#gone(request);
  }

  #wait({ shared }: PickRequest, message: ProcessingRequest): void {
    // Tokens may have been there at once.
    if (this.#early === undefined) return this.#ofResponse(this.#request!, message);
    const bytes = message.responseBody?.body.length ?? 0;
    if (bytes > 0 && (this.#lacks || !shared.bodies.take(bytes, PROXY))) {
      this.#lacks = true;
      this.#early.push({ ...message, responseBody: { body: NOTHING, ends: message.responseBody!.ends } });
      return;
    }
    this.#earlyBytes += bytes;
    this.#early.push(message);
  }

  #ofResponse(request: PickRequest, message: ProcessingRequest): void {
    if (request.over) return;
    const { responseHeaders, responseBody } = message;
    if (responseHeaders !== undefined) this.#responseHeaders(request, message, responseHeaders);
    if (responseBody !== undefined) {
      request.alive();
      if (!this.#lacks) this.#response?.data(responseBody.body);
    }
    const ends = responseHeaders?.ends === true || responseBody?.ends === true || message.responseTrailers;
    if (ends) this.#finish(request, true);
  }

  #responseHeaders(request: PickRequest, { upstream }: ProcessingRequest, { flat }: ProxiedHeaders): void {
    const { tokens, limits, answerReader: reader, route, routeId } = request;
    const headers = new RequestHeaders(flat);
    this.#shared.answered(routeId, recordOf(headers), upstream);
    if (tokens === undefined) return;
    const answered = { dialect: route.dialect, limits, tokens, reader, passed: () => request.passed() };
    this.#response = new ObservedResponse(headers, answered);
    request.seen = { ...request.seen, status: this.#response.status };
  }

  /** Where bodies are not shown, the stream's end is all that shows the response's. */
  #gone(request: PickRequest): void {
    this.#finish(request, this.#modes.response === BODY_MODE.none && this.#response !== undefined);
  }

  #finish(request: PickRequest, isComplete: boolean): void {
    request.end(this.#response?.ended(isComplete) ?? LEFT);
  }
}

const NOTHING = Buffer.alloc(0);
const LEFT = { outcome: "aborted", fault: undefined, usage: undefined, outputTokens: undefined } as const;
/** Reasons for which a request is recorded unread, as gnomon_passed_unread_total counts them. */
const TOO_LARGE = refusal("too-large", "The body is longer than limits.bodyBytesMax.");
const NO_ROOM = refusal("saturated", "No room for the body.");
const NOT_SHOWN = refusal("bad-request", "The proxy shows no bodies of requests.");
const NOT_WHOLE = refusal("bad-request", "It was answered before its body was read.");

/** The last of a name stands. */
function recordOf({ names, raw }: RequestHeaders): AnswerHeaders {
  return Object.fromEntries(names.map((name, i) => [name, raw[2 * i + 1]!]));
}
