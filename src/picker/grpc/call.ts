import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { BadMessage } from "./message-reader.ts";
import { GRPC_STATUS, GrpcError, MessageFrames } from "./message-frames.ts";

/** What a method does with a call's messages. */
export interface CallReceiver {
  message(bytes: Buffer): void;
  /** The client sends no more. */
  clientEnded(): void;
  /** The call is over, in whatever way. */
  closed(): void;
}

/** A method is called, and gives who receives the call's messages. */
export type GrpcMethod = (call: GrpcCall) => CallReceiver;

const HEAD = { ":status": 200, "content-type": "application/grpc+proto", "grpc-accept-encoding": "identity" };
const WITH_TRAILERS = { waitForTrailers: true };
const TIMEOUT = /^(\d{1,8})([HMSmun])$/;
const MILLIS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 0.001, n: 0.000_001 };
const TIMER_MILLIS_MAX = 2 ** 31 - 1;

/** One call of a method, on its stream of HTTP/2. */
export class GrpcCall {
  readonly #stream: ServerHttp2Stream;
  readonly #frames: MessageFrames;
  readonly #receiver: CallReceiver;
  #timer: NodeJS.Timeout | undefined;
  #hasEnded = false;

  constructor(stream: ServerHttp2Stream, method: GrpcMethod, messageBytesMax: number) {
    this.#stream = stream;
    this.#frames = new MessageFrames(messageBytesMax);
    this.#receiver = method(this);
  }

  start(headers: IncomingHttpHeaders): void {
    const stream = this.#stream;
    const timeout = headers["grpc-timeout"];
    if (typeof timeout === "string") this.#limit(timeout);
    stream.on("data", (piece: Buffer) => this.#piece(piece));
    stream.on("end", () => this.#clientEnded());
    stream.on("close", () => this.#closed());
  }

  /** Sends messages, framed. A client that does not read them is not read meanwhile. */
  send(framed: Buffer): void {
    const stream = this.#stream;
    if (this.#hasEnded || stream.destroyed) return;
    if (!stream.headersSent) stream.respond(HEAD, WITH_TRAILERS);
    if (stream.write(framed)) return;
    stream.pause();
    stream.once("drain", () => stream.resume());
  }

  end(status: number = GRPC_STATUS.ok, text = ""): void {
    const stream = this.#stream;
    if (this.#hasEnded || stream.destroyed) return;
    this.#hasEnded = true;
    const trailers = { "grpc-status": status, ...(text !== "" && { "grpc-message": escaped(text) }) };
    if (!stream.headersSent) {
      stream.respond({ ...HEAD, ...trailers }, { endStream: true });
      return;
    }
    stream.once("wantTrailers", () => stream.sendTrailers(trailers));
    stream.end();
  }

  #piece(piece: Buffer): void {
    if (this.#hasEnded) return;
    try {
      this.#frames.push(piece, (message) => {
        if (!this.#hasEnded) this.#receiver.message(message);
      });
    } catch (error) {
      this.#fail(error);
    }
  }

  #clientEnded(): void {
    if (this.#hasEnded) return;
    if (this.#frames.isBetween) this.#receiver.clientEnded();
    else this.end(GRPC_STATUS.internal, "the last message is cut off");
  }

  #fail(error: unknown): void {
    if (error instanceof GrpcError) this.end(error.status, error.message);
    else if (error instanceof BadMessage) this.end(GRPC_STATUS.internal, error.message);
    else throw error;
  }

  #limit(timeout: string): void {
    const [, count, unit = ""] = TIMEOUT.exec(timeout) ?? [];
    if (count === undefined) return this.end(GRPC_STATUS.internal, "grpc-timeout is no time");
    const millis = Math.min(TIMER_MILLIS_MAX, Number(count) * MILLIS[unit]!);
    this.#timer = setTimeout(() => this.end(GRPC_STATUS.deadlineExceeded, "the call's time is over"), millis).unref();
  }

  #closed(): void {
    clearTimeout(this.#timer);
    this.#receiver.closed();
  }
}

/** As gRPC writes texts into headers. */
function escaped(text: string): string {
  return text.replaceAll(/[^ -$&-~]/gu, encodeURIComponent);
}
