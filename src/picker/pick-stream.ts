import type { Routed } from "#core/input/decision.ts";
import { type Refusal, refusal } from "#live/http/errors.ts";
import { RequestHeaders } from "#live/http/headers.ts";
import type { NameSwap } from "#live/answer/name-swap.ts";
import type { PickRequestShared } from "./pick-request.ts";
import { askBody, askWithoutBody } from "#live/routing/ask.ts";
import { decisiveText } from "#live/base/decisive.ts";
import type { Addresses } from "./destination.ts";
import { ObservedResponse } from "./observed-response.ts";
import { PickRequest } from "./pick-request.ts";
import { apart } from "./apart.ts";
import type { MessageRefusal } from "./grpc/call.ts";
import type { PickedPath } from "./picked-path.ts";
import { GO_ON, immediate, routedBody, routedHeaders, streamedBody } from "./replies.ts";
import {
  BODY_MODE,
  type HeaderChanges,
  type ProcessingRequest,
  type ProcessingResponse,
  type ProxiedBody,
  type ProxiedHeaders,
  REPLY,
} from "./wire.ts";

/** What all streams share. */
export interface PickerShared {
  readonly gateway: PickRequestShared;
  readonly addresses: Addresses;
  readonly pathOf: (target: string) => PickedPath;
  /** Further endpoints named behind the chosen one. */
  readonly fallbacksMax: number;
}

/** Sends messages back to the proxy; calls back once they are not held for it any more. */
export type SendReplies = (responses: readonly ProcessingResponse[], gone?: () => void) => void;

/**
 * One HTTP request of a proxy and its response, on one stream of external processing: a host of the core beside the
 * gateway. From the body to the decision the path is the gateway's own; the proxy carries the bytes.
 */
export class PickStream {
  readonly #shared: PickerShared;
  readonly #replies: SendReplies;
  #requestMode: number = BODY_MODE.fullDuplexStreamed;
  #responseMode: number = BODY_MODE.fullDuplexStreamed;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #asked: "no" | "by-headers" | "by-body" = "no";
  #trailersWait = false;
  #request: PickRequest | undefined;
  #response: ObservedResponse | undefined;
  /** Where the response is to name another model than the engine does. */
  #swap: NameSwap | undefined;

  constructor(shared: PickerShared, replies: SendReplies) {
    this.#shared = shared;
    this.#replies = replies;
    shared.gateway.counters.pickerStreams++;
  }

  /** Takes one message of the proxy in. A defect on the way is this request's own. */
  message(message: ProcessingRequest): void {
    try {
      this.#message(message);
    } catch (error) {
      this.#request?.bug(error);
    }
  }

  /** A message is not taken; false where the request has no answer for that any more. */
  refused(why: MessageRefusal): boolean {
    const request = this.#request;
    if (request === undefined || request.over || this.#asked !== "no") return false;
    request.refuse(why === "no-room" ? TOO_MANY_BYTES : tooLarge(request));
    return true;
  }

  /** The proxy closed the stream: the exchange is over, or was broken off. */
  closed(): void {
    this.#finish(this.#responseMode === BODY_MODE.none && this.#response !== undefined);
  }

  #send(...responses: readonly ProcessingResponse[]): void {
    this.#replies(responses);
  }

  #message(message: ProcessingRequest): void {
    if (message.requestHeaders !== undefined) return this.#requestHeaders(message, message.requestHeaders);
    const request = this.#request;
    if (request === undefined) return;
    if (message.requestBody !== undefined) this.#requestBody(request, message.requestBody);
    else if (message.requestTrailers) this.#requestTrailers(request);
    else if (message.responseHeaders !== undefined) this.#responseHeaders(request, message, message.responseHeaders);
    else if (message.responseBody !== undefined) this.#responseBody(request, message.responseBody);
    else if (message.responseTrailers) {
      this.#send(GO_ON.responseTrailers);
      this.#finish(true);
    }
  }

  #requestHeaders(message: ProcessingRequest, { flat, ends }: ProxiedHeaders): void {
    if (this.#request !== undefined) return;
    const { modes } = message;
    if (modes !== undefined) {
      this.#requestMode = modes.request;
      this.#responseMode = modes.response;
    }
    const { gateway, addresses, pathOf } = this.#shared;
    const headers = new RequestHeaders(flat);
    const { route, takesBody, refused } = pathOf(headers.get(":path"));
    const request = new PickRequest({
      shared: gateway,
      headers,
      route,
      subset: addresses.subset(message),
      refused: (why) => this.#send(immediate(why, route.dialect, gateway.sendsOwnHeaders)),
      defect: () => this.#defect(),
    });
    this.#request = request;
    request.seen = { status: 0, showsBodies: this.#responseMode !== BODY_MODE.none };
    // Also while it leaves: who opened this had not read the notice, and Envoy tries a refusal nowhere else.
    if (gateway.inFlight.size > request.limits.requestsInFlightMax) return request.refuse(FULL);
    if (refused !== undefined) return request.refuse(refused);
    if (ends || !takesBody || UNREAD_MODES.has(this.#requestMode)) {
      this.#asked = "by-headers";
      return askWithoutBody(request, (decision) => this.#place(request, decision));
    }
    if (Number(headers.get("content-length")) > request.limits.bodyBytesMax) return request.refuse(tooLarge(request));
    if (this.#requestMode !== BODY_MODE.fullDuplexStreamed) this.#send(GO_ON.requestHeaders);
  }

  #requestBody(request: PickRequest, { body, ends }: ProxiedBody): void {
    const duplex = this.#requestMode === BODY_MODE.fullDuplexStreamed;
    if (this.#asked === "by-body") this.#shared.gateway.counters.pickerRepeated++;
    else if (this.#asked === "by-headers") this.#passBody(body, ends);
    else if (!request.over && this.#hold(request, body) && (ends || !duplex)) this.#ask(request, true);
  }

  /** The body of a request that was placed by its headers goes on as it comes. */
  #passBody(body: Buffer, ends: boolean): void {
    if (this.#requestMode !== BODY_MODE.fullDuplexStreamed) this.#send(GO_ON.requestBody);
    else this.#send(...streamedBody(REPLY.requestBody, body, ends));
  }

  #requestTrailers(request: PickRequest): void {
    if (this.#asked !== "no" || request.over) return this.#send(GO_ON.requestTrailers);
    this.#trailersWait = true;
    this.#ask(request, false);
  }

  #hold(request: PickRequest, body: Buffer): boolean {
    this.#bytes += body.length;
    if (this.#bytes > request.limits.bodyBytesMax) request.refuse(tooLarge(request));
    else if (!request.holdBody(body.length)) request.refuse(TOO_MANY_BYTES);
    else this.#chunks.push(apart(body));
    return !request.over;
  }

  #ask(request: PickRequest, ends: boolean): void {
    this.#asked = "by-body";
    const body = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
    this.#chunks = [];
    askBody(request, body, (decision, sent) => this.#place(request, decision, { given: body, sent, ends }));
  }

  /** The decision goes out, and with it, in full duplex, the body that waited for it. */
  #place(request: PickRequest, decision: Routed, body?: WaitingBody): void {
    if (request.over) return;
    request.took(decision);
    const addresses = this.#shared.addresses.destination(decision, this.#shared.fallbacksMax);
    if (addresses === undefined) return request.refuse(GONE);
    const changed = body === undefined || body.sent === body.given ? undefined : body.sent;
    const withheld = request.shared.engineFields.headersIn(request.headers);
    const destination = { addresses, bodyBytes: changed?.length, withheld };
    if (body === undefined) return this.#send(routedHeaders(destination));
    const replies: ProcessingResponse[] =
      this.#requestMode !== BODY_MODE.fullDuplexStreamed
        ? [routedBody(destination, changed)]
        : [
            routedHeaders(destination),
            ...streamedBody(REPLY.requestBody, body.sent, body.ends),
            ...(this.#trailersWait ? [GO_ON.requestTrailers] : []),
          ];
    this.#replies(replies, () => request.releaseBody());
  }

  #responseHeaders(request: PickRequest, message: ProcessingRequest, { flat, ends }: ProxiedHeaders): void {
    const served = this.#shared.addresses.served(message);
    if (served !== undefined && request.routed !== undefined && served !== request.endpoint) {
      this.#shared.gateway.counters.pickerMoved++;
      request.movedTo(served);
    }
    const { tokens, limits, answerReader: reader, route } = request;
    if (tokens !== undefined) {
      const answered = { dialect: route.dialect, limits, tokens, reader, passed: () => request.passed() };
      this.#response = new ObservedResponse(new RequestHeaders(flat), answered);
      request.seen = { ...request.seen, status: this.#response.status };
      if (!request.stream) request.alive();
    }
    const hasBody = !ends && this.#responseMode !== BODY_MODE.none;
    if (hasBody && this.#response?.isReadable === true) this.#swap = request.nameSwap;
    this.#send({ kind: REPLY.responseHeaders, headers: ownHeaders(request, this.#swap !== undefined) });
    if (ends) this.#finish(true);
  }

  #responseBody(request: PickRequest, { body, ends }: ProxiedBody): void {
    if (!request.over) {
      request.alive();
      this.#response?.data(body);
    }
    const swap = this.#swap;
    const given = swap === undefined ? body : named(swap, body, ends);
    if (this.#responseMode === BODY_MODE.fullDuplexStreamed)
      this.#send(...streamedBody(REPLY.responseBody, given, ends));
    else this.#send(swap === undefined ? GO_ON.responseBody : { kind: REPLY.responseBody, body: given });
    if (ends) this.#finish(true);
  }

  #finish(complete: boolean): void {
    this.#request?.end(
      this.#response?.ended(complete) ?? {
        outcome: "aborted",
        fault: undefined,
        usage: undefined,
        outputTokens: undefined,
      },
    );
  }

  /** A response that began goes on, unread. */
  #defect(): void {
    if (this.#response === undefined) this.#request?.refuse(INTERNAL);
    else this.#finish(false);
  }
}

interface WaitingBody {
  readonly given: Buffer;
  /** Another one where the picker changed it. */
  readonly sent: Buffer;
  /** False where trailers follow. */
  readonly ends: boolean;
}

/** A piece of a response with the name that its client asked for; what was held follows with the last. */
function named(swap: NameSwap, body: Buffer, ends: boolean): Buffer {
  const given = swap.push(body);
  return ends ? Buffer.concat([given, swap.rest()]) : given;
}

/** Where the body changes, the engine's length of it goes. */
function ownHeaders({ routed, shared, endpoint, prompt }: PickRequest, changes: boolean): HeaderChanges | undefined {
  const removed = changes ? ["content-length"] : undefined;
  if (routed === undefined || !shared.sendsOwnHeaders) return changes ? { set: [], removed } : undefined;
  const set: [string, string][] = [
    ["x-gnomon-endpoint", endpoint],
    ["x-gnomon-hit-tokens", String(routed.hitTokens)],
    ["x-gnomon-reason", decisiveText(routed, prompt)],
  ];
  return { set, removed };
}

function tooLarge({ limits }: PickRequest): Refusal {
  return refusal("too-large", `The request body is larger than ${limits.bodyBytesMax} bytes (limits.bodyBytesMax).`);
}

/** In these modes no body comes before the answer to the headers, which alone may name a destination. */
const UNREAD_MODES: ReadonlySet<number> = new Set([BODY_MODE.none, BODY_MODE.streamed, BODY_MODE.grpc]);
const FULL = refusal("full", "This picker has as many requests in flight as it may.");
const GONE = refusal("no-endpoint", "The endpoint left as it was chosen.");
const INTERNAL = refusal("internal", "The picker failed on this request.");
const TOO_MANY_BYTES = refusal(
  "saturated",
  "The limit of request bytes held at once for the picker is reached; try again later.",
);
