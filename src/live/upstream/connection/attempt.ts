import type { Dispatcher } from "undici";
import type { EndpointEntry } from "../../endpoints/endpoint-directory.ts";
import { isMediaType, type AnswerHeaders, upstreamHeaders } from "../../http/headers.ts";
import { nowMicros } from "../../base/clock.ts";
import type { UpstreamConnection, Upstream, UpstreamPools } from "./upstream-pools.ts";
import type { PieceSink } from "./upstream-reads.ts";
import type { Routed } from "#core/input/decision.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { ClientRequest } from "../../request/client-request.ts";
import type { SentContent } from "../../request/engine-body.ts";
import type { RequestSpans } from "../../tracing/request-spans.ts";

/** Is notified of how an attempt goes, until it is detached. */
export interface AttemptListener {
  answerStarted(status: number, headers: AnswerHeaders): void;
  answerData(chunk: Buffer): void;
  /** Chunks of a stream, of which it takes what it can as `Answer.chunks` does; none where it has no such method. */
  answerChunks?(bytes: Buffer, to: number): number;
  answerEnded(): void;
  /** A kept connection was stale and the request goes out once more. */
  attemptReconnects(): void;
  /** The connection failed or broke; no notification comes after it. */
  attemptBroke(error: Error): void;
}

export interface UpstreamRequest {
  readonly path: string;
  readonly headers: string[];
  readonly body: Buffer;
}

/** A reset this soon after the request went out means a kept connection that the endpoint was just closing. */
const STALE_RESET_MICROS = 1_000_000;
const RESET_CODES: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"]);

/** Made once: an error's stack costs more than all the rest of a request's end. */
const NO_LONGER_WANTED = new Error("no longer wanted");

/** One request on its way to one endpoint, straight from undici's dispatcher. */
export class Attempt implements Dispatcher.DispatchHandler, PieceSink {
  readonly #upstream: Upstream;
  readonly #request: UpstreamRequest;
  #listener: AttemptListener | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #connection: UpstreamConnection | undefined;
  #startedAt = 0;
  /** Only what was sent once and not answered may go out again. */
  #state: "sent" | "sent-again" | "answered" | "released" = "sent";

  constructor(upstream: Upstream, request: UpstreamRequest, listener: AttemptListener) {
    this.#upstream = upstream;
    this.#request = request;
    this.#listener = listener;
    upstream.inFlight++;
  }

  get entry(): EndpointEntry {
    return this.#upstream.entry;
  }

  send(): void {
    this.#connection ??= this.#upstream.clients.take();
    this.#connection.send(this.#request, this);
  }

  /** Takes no more of its answer and ends the connection at once, so that the engine stops too. */
  abort(): void {
    this.#listener = undefined;
    if (this.#state !== "released") this.#controller?.abort(NO_LONGER_WANTED);
  }

  pause(): void {
    if (this.#state === "released") return;
    this.#controller?.pause();
    this.#connection?.reads.pause();
  }

  resume(): void {
    if (this.#state === "released") return;
    this.#controller?.resume();
    this.#connection?.reads.resume();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    this.#startedAt = nowMicros();
    if (this.#listener === undefined) controller.abort(NO_LONGER_WANTED);
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: AnswerHeaders): void {
    if (status < 200 || this.#state === "released") return;
    this.#state = "answered";
    this.#listener?.answerStarted(status, headers);
    if (this.#listener !== undefined && isStream(headers)) this.#connection?.reads.follow(this);
  }

  /** Of a stream, past undici. */
  piece(bytes: Buffer): void {
    this.#listener?.answerData(bytes);
  }

  chunks(bytes: Buffer, to: number): number {
    return this.#listener?.answerChunks?.(bytes, to) ?? 0;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#listener?.answerData(chunk);
  }

  onResponseEnd(): void {
    this.#connection?.answered();
    this.#release();
    const listener = this.#listener;
    this.#listener = undefined;
    listener?.answerEnded();
  }

  /**
   * A kept connection may close just as it is used again. Nothing was answered then, the endpoint is well, and the same
   * request goes out once more on a new connection; should the endpoint be gone after all, that fails to connect. One that
   * was made for this request and ends without an answer is the engine's own doing: policy and budget decide what follows.
   * Undici is still taking the old connection apart when it calls this, so the request goes out after that.
   */
  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    if (this.#listener !== undefined && this.#state === "sent" && this.#isStale(error)) {
      this.#state = "sent-again";
      this.#listener.attemptReconnects();
      this.#controller = undefined;
      queueMicrotask(() => this.#sendAgain());
      return;
    }
    this.#release();
    const listener = this.#listener;
    this.#listener = undefined;
    listener?.attemptBroke(error);
  }

  #sendAgain(): void {
    if (this.#listener === undefined) this.#release();
    else this.send();
  }

  #isStale(error: Error): boolean {
    if (this.#connection?.mayBeStale !== true) return false;
    // Undici also fails a request that it had not begun to write when the connection that it was to go over is reset.
    if (this.#startedAt > 0 && nowMicros() - this.#startedAt > STALE_RESET_MICROS) return false;
    return "code" in error && typeof error.code === "string" && RESET_CODES.has(error.code);
  }

  #release(): void {
    if (this.#state === "released") return;
    this.#state = "released";
    this.#upstream.inFlight--;
    if (this.#connection === undefined) return;
    this.#connection.reads.end();
    this.#upstream.clients.giveBack(this.#connection);
  }
}

/** Its body comes in chunks, an event in each or as many as lay together. */
function isStream(headers: AnswerHeaders): boolean {
  const type = headers["content-type"];
  return (
    headers["transfer-encoding"] === "chunked" && typeof type === "string" && isMediaType(type, "text/event-stream")
  );
}

/** What attempts share. */
export interface AttemptShared {
  readonly pools: Pick<UpstreamPools, "get">;
  /** Clients authenticate to the gateway, so that their keys are not the engines'. */
  readonly keepsAuthorization: boolean;
  /** Headers that no client may send, in lower case. */
  readonly engineFields: { readonly headers: ReadonlySet<string> };
  /** Spans of requests; undefined where there are none. */
  readonly spans: RequestSpans | undefined;
}

/** A request, as far as its attempts differ from those of others. */
interface AttemptedRequest extends Pick<ClientRequest, "headers" | "requestId" | "routeId" | "limits"> {
  readonly shared: AttemptShared;
}

interface SentRequest extends SentContent {
  readonly endpoint: EndpointId;
  readonly priority: Routed["priority"];
}

/** An attempt that is yet to be sent, or why there can be none. */
export function openAttempt(
  { shared, headers: given, requestId, routeId, limits }: AttemptedRequest,
  { endpoint, path, body, priority }: SentRequest,
  listener: AttemptListener,
): Attempt | Fault {
  const upstream = shared.pools.get(endpoint);
  if (upstream === undefined) return "connect";
  if (upstream.inFlight >= limits.upstreamConnectionsMax) return "saturated";
  const headers = upstreamHeaders(given, upstream.entry, {
    requestId,
    dropAuthorization: shared.keepsAuthorization,
    withheld: shared.engineFields.headers,
    priority,
  });
  shared.spans?.sends(routeId, endpoint, headers);
  return new Attempt(upstream, { path, headers, body }, listener);
}
