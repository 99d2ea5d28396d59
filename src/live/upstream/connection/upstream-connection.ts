import type { OnReadOpts } from "node:net";

import type { Client, Dispatcher } from "undici";

import type { AnswerHeaders } from "../../http/headers.ts";
import { afterReads } from "./next-turn.ts";
import { PlainAnswers, type PlainSink } from "./plain-answers.ts";
import { type WireRequest, wireHead, writeRequest } from "./request-wire.ts";
import { UpstreamReads } from "./upstream-reads.ts";

/** What is sent, and whether its answer is to come in one piece. */
export interface ConnectionRequest extends WireRequest {
  readonly headers: string[];
  readonly whole: boolean;
}

export interface PlainOptions {
  /** Of the Host header. */
  readonly host: string;
  /** Longest body that is read here; 0 leaves all answers to undici. */
  readonly bytesMax: number;
}

/**
 * A connection that is made when it is needed, and made anew where it closed, with one request at a time.
 *
 * Undici makes it and sends the first request. Of a request whose answer comes in one piece, it took a fifth of the
 * gateway's time: an object with each header checked again, a turn of the loop for itself, a parser in WebAssembly that
 * calls back for every header. So where the answer's head is plain, it is read past undici (`PlainAnswers`), which goes on
 * waiting for it: the connection is held, and the next requests are written and their answers read here. As soon as an
 * answer is in any way unusual, undici gets it as the one that it waits for, and reads it as it reads all. Errors, closed
 * connections, connecting and ending are undici's throughout. A held connection has no idle timeout of undici's; who holds
 * connections ends them in time (`drop`).
 */
export class UpstreamConnection implements PlainSink {
  readonly client: Client;
  readonly reads: UpstreamReads;
  /** Since when it is held without a request, in microseconds; for those who hold it. */
  idleSince = 0;
  /** Answers that ended since it was made last. */
  #answers = 0;
  readonly #host: string;
  readonly #plain: PlainAnswers | undefined;
  /** Undici's request in flight, while the connection is held or may come to be held. */
  #carrier: Carrier | undefined;
  /** A request that is written to the held connection in the next turn of the event loop. */
  #next: { readonly request: ConnectionRequest; readonly handler: Dispatcher.DispatchHandler } | undefined;
  #closing = false;

  /** Makes its client with what is read from its connections. */
  constructor(makeClient: (onread: OnReadOpts) => Client, options?: PlainOptions) {
    this.#host = options?.host ?? "";
    this.#plain =
      options === undefined || options.bytesMax === 0 ? undefined : new PlainAnswers(this, options.bytesMax);
    this.reads = new UpstreamReads(this.#plain);
    this.client = makeClient(this.reads.onread);
    const isNew = (): void => void (this.#answers = 0);
    this.client.on("connect", isNew).on("disconnect", isNew);
  }

  /** Undici waits for an answer, and nothing was asked. */
  get isHeld(): boolean {
    return this.#plain?.isIdle === true && this.#next === undefined;
  }

  /** What comes now does not pass through undici. */
  get readsPlain(): boolean {
    return this.#plain?.reads === true;
  }

  /**
   * An end that comes now may be one that the engine decided on before it read the request: it had answered over this
   * connection, and nothing of this answer came.
   */
  get mayBeStale(): boolean {
    return this.#answers > 0 && !this.reads.came;
  }

  /** An answer is whole. */
  answered(): void {
    this.#answers++;
  }

  /** The last request is over; this one takes its place. */
  send(request: ConnectionRequest, handler: Dispatcher.DispatchHandler): void {
    this.reads.begin();
    if (this.#plain?.isIdle === true) {
      this.#next = { request, handler };
      afterReads(this);
    } else this.#dispatch(request, handler);
  }

  /** Holds no connection from now on, so that undici's client can close. */
  close(): void {
    this.#closing = true;
    if (this.isHeld) this.drop();
  }

  /** Ends a connection that is held. */
  drop(): void {
    this.#carrier?.abort(NOT_NEEDED);
  }

  turnCame(): void {
    const next = this.#next;
    this.#next = undefined;
    if (next === undefined) return;
    const { request, handler } = next;
    const [carrier, socket] = [this.#carrier, this.#plain?.socket];
    const head = wireHead(this.#host, request);
    if (
      carrier === undefined ||
      socket === undefined ||
      !socket.writable ||
      socket.readableEnded ||
      head === undefined
    ) {
      // A request of undici's own waits behind the one that it has in flight.
      if (head === undefined) carrier?.abort(NOT_NEEDED);
      return this.#dispatch(request, handler);
    }
    this.#plain!.sent();
    carrier.handler = handler;
    handler.onRequestStart?.(carrier.controller!, undefined);
    if (this.#carrier !== carrier) return;
    socket.ref();
    writeRequest(socket, head, request.body);
  }

  #dispatch(request: ConnectionRequest, handler: Dispatcher.DispatchHandler): void {
    const { path, headers, body, whole } = request;
    this.#plain?.leave();
    this.#carrier = undefined;
    const sent = { path, method: "POST", headers } as const;
    if (this.#plain === undefined || !whole || this.#closing) {
      this.client.dispatch({ ...sent, body }, handler);
      return;
    }
    // Undici keeps it as long as its request is in flight.
    const copy = Buffer.allocUnsafeSlow(body.length);
    body.copy(copy);
    const carrier = new Carrier(this, handler, copy.buffer);
    this.#carrier = carrier;
    this.client.dispatch({ ...sent, body: copy }, carrier);
  }

  /** Undici writes its request, now. */
  started(carrier: Carrier): void {
    if (this.#carrier === carrier) this.#plain?.sent();
  }

  /** Undici has nothing in flight any more. */
  over(carrier: Carrier): void {
    if (this.#carrier !== carrier) return;
    this.#carrier = undefined;
    this.#plain?.leave();
  }

  plainStarted(headers: AnswerHeaders): void {
    const carrier = this.#carrier!;
    try {
      carrier.handler?.onResponseStart?.(carrier.controller!, 200, headers, "OK");
    } catch (error) {
      carrier.abort(error as Error);
    }
  }

  plainData(piece: Buffer): void {
    const carrier = this.#carrier!;
    try {
      carrier.handler?.onResponseData?.(carrier.controller!, piece);
    } catch (error) {
      carrier.abort(error as Error);
    }
  }

  plainEnded(): void {
    const carrier = this.#carrier!;
    const { handler, controller } = carrier;
    const socket = this.#plain!.socket!;
    carrier.handler = undefined;
    if (socket.writableLength === 0) carrier.forgetBody();
    socket.unref();
    try {
      handler?.onResponseEnd?.(controller!, {});
    } catch (error) {
      handler?.onResponseError?.(controller!, error as Error);
    }
    if (this.#closing && this.isHeld) this.drop();
  }

  strayBytes(): void {
    this.drop();
  }

  leftToUndici(headRead: boolean): void {
    const carrier = this.#carrier!;
    carrier.headRead = headRead;
    if (this.reads.paused) carrier.controller!.pause();
  }
}

const NOT_NEEDED = new Error("no request needs this connection");

/**
 * The request that undici has in flight on a connection. While the connection is held it stands for each request that is
 * sent past undici, one after another; `handler` is that of the request under way.
 */
class Carrier implements Dispatcher.DispatchHandler {
  controller: Dispatcher.DispatchController | undefined;
  handler: Dispatcher.DispatchHandler | undefined;
  /** Undici is about to get a head in place of the one that was read already. */
  headRead = false;
  readonly #connection: UpstreamConnection;
  #body: ArrayBuffer | undefined;

  constructor(connection: UpstreamConnection, handler: Dispatcher.DispatchHandler, body: ArrayBuffer) {
    this.#connection = connection;
    this.handler = handler;
    this.#body = body;
  }

  /** Gives back the memory of the body, which went out. */
  forgetBody(): void {
    this.#body?.transfer(0);
    this.#body = undefined;
  }

  abort(reason: Error): void {
    this.controller?.abort(reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    this.controller = controller;
    this.#connection.started(this);
    this.handler?.onRequestStart?.(controller, context);
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[]>,
    text?: string,
  ): void {
    if (!this.headRead) this.handler?.onResponseStart?.(controller, status, headers, text);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.handler?.onResponseData?.(controller, chunk);
  }

  onResponseEnd(controller: Dispatcher.DispatchController, trailers: Record<string, string | string[]>): void {
    this.#connection.over(this);
    this.handler?.onResponseEnd?.(controller, trailers);
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    this.#connection.over(this);
    this.handler?.onResponseError?.(controller, error);
  }
}
