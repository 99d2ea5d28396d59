import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { ConnectionFailure } from "./connection.ts";
import { BadMessage } from "./message-reader.ts";
import { GRPC_STATUS, GrpcError, MessageFrames, type MessageRoom } from "./message-frames.ts";

/** What a method does with a call's messages. */
export interface CallReceiver {
  message(bytes: Buffer): void;
  /** The client sends no more. */
  clientEnded(): void;
  /** The call is over, in whatever way; once. */
  closed(): void;
  /** A message is not taken, as it is too large or there is no room for it: true where that was answered. */
  refused?(why: MessageRefusal): boolean;
  /** From one message of the client to the next, or to its end; without end where left out. */
  readonly idleMillisMax?: number;
}

/** A method is called, and gives who receives the call's messages. */
export type GrpcMethod = (call: GrpcCall) => CallReceiver;

export type MessageRefusal = "message-too-large" | "no-room";

/** Why the server ended a call, or its connection, that was not served as asked. */
export type CallFailure =
  | MessageRefusal
  | ConnectionFailure
  | "bad-message"
  | "bad-timeout"
  | "calls"
  | "cut-off"
  | "compressed"
  | "defect"
  | "idle"
  | "left-open"
  | "no-message"
  | "time-over"
  | "unread";

/** What calls of a server share. */
export interface CallLimits {
  readonly messageBytesMax: number;
  /** Of messages that come in pieces, all calls together. */
  readonly room: MessageRoom;
  /** A client that does not read replies for so long, or does not end its side after the call's end, is reset. */
  readonly writeStallMillisMax: number;
  /** From a call to its first message. */
  readonly firstMessageMillisMax: number;
  /** Counts a failure; a defect comes with what was thrown. */
  readonly failed: (why: CallFailure, error?: unknown) => void;
}

/** Of a call that is not served. */
export const NO_RECEIVER: CallReceiver = { message: () => {}, clientEnded: () => {}, closed: () => {} };

const HEAD = { ":status": 200, "content-type": "application/grpc+proto", "grpc-accept-encoding": "identity" };
const WITH_TRAILERS = { waitForTrailers: true, sendDate: false };
const TRAILERS_ONLY = { endStream: true, sendDate: false };
const TIMEOUT = /^(\d{1,8})([HMSmun])$/;
const MILLIS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 0.001, n: 0.000_001 };
const TIMER_MILLIS_MAX = 2 ** 31 - 1;

/** One call of a method, on its stream of HTTP/2. */
export class GrpcCall {
  readonly #stream: ServerHttp2Stream;
  readonly #limits: CallLimits;
  readonly #frames: MessageFrames;
  #receiver: CallReceiver = NO_RECEIVER;
  #timer: NodeJS.Timeout | undefined;
  /** Runs until the client's next message is due. */
  #idle: NodeJS.Timeout | undefined;
  #messages = 0;
  /** Runs while replies wait for the client to read, and from the call's end to its stream's. */
  #stalled: NodeJS.Timeout | undefined;
  #hasEnded = false;
  #isOver = false;

  constructor(stream: ServerHttp2Stream, limits: CallLimits) {
    this.#stream = stream;
    this.#limits = limits;
    this.#frames = new MessageFrames(limits.messageBytesMax, limits.room);
  }

  start(method: GrpcMethod, headers: IncomingHttpHeaders): void {
    const stream = this.#stream;
    this.#receiver = method(this);
    stream.on("data", (piece: Buffer) => this.#piece(piece));
    stream.on("end", () => this.#clientEnded());
    stream.on("aborted", () => this.#over());
    stream.on("close", () => {
      this.#stopStall();
      this.#over();
      // The sets of Node's sessions hold streams that are gone until the next full collection, and they would hold all of a request.
      stream.removeAllListeners();
      stream.on("error", ignore);
      this.#receiver = NO_RECEIVER;
    });
    if (this.#isOver) return;
    this.#expect(this.#limits.firstMessageMillisMax, "no-message");
    const timeout = headers["grpc-timeout"];
    if (typeof timeout === "string") this.#limit(timeout);
  }

  /**
   * Sends messages, framed; calls back once they are not held for the client any more. A client that does not read them is not
   * read meanwhile.
   */
  send(framed: Buffer, gone: () => void = () => {}): void {
    const stream = this.#stream;
    if (!this.#isOpen) return gone();
    if (!stream.headersSent) stream.respond(HEAD, WITH_TRAILERS);
    if (stream.write(framed, gone) || this.#stalled !== undefined) return;
    stream.pause();
    this.#startStall();
    stream.once("drain", () => {
      if (this.#hasEnded) return;
      this.#stopStall();
      stream.resume();
    });
  }

  end(status: number = GRPC_STATUS.ok, text = ""): void {
    const stream = this.#stream;
    if (!this.#isOpen) return;
    this.#hasEnded = true;
    const trailers = { "grpc-status": status, ...(text !== "" && { "grpc-message": escaped(text) }) };
    if (stream.headersSent) {
      stream.once("wantTrailers", () => stream.sendTrailers(trailers));
      stream.end();
    } else stream.respond({ ...HEAD, ...trailers }, TRAILERS_ONLY);
    // A client ends its side too, once it has the status; a reset now could overtake that.
    this.#stopStall();
    this.#startStall();
    this.#over();
  }

  /** A stream that its client reset may still give what had come before. */
  get #isOpen(): boolean {
    return !this.#hasEnded && !this.#stream.closed && !this.#stream.destroyed;
  }

  #piece(piece: Buffer): void {
    if (!this.#isOpen) return;
    this.#guarded(() =>
      this.#frames.push(piece, (message) => {
        if (!this.#isOpen) return;
        this.#messages++;
        this.#receiver.message(message);
      }),
    );
  }

  /**
   * Waits for the next message. Nothing is done as one comes, since most calls are over before the first look: one that has gone
   * quiet ends between one and two such times after its last message.
   */
  #expect(millis: number, why: "idle" | "no-message"): void {
    const before = this.#messages;
    this.#idle = setTimeout(() => {
      // What came while this process itself stood still is read first.
      setImmediate(() => {
        if (!this.#isOpen) return;
        const { idleMillisMax } = this.#receiver;
        if (this.#messages === before) this.#fail(why, GRPC_STATUS.deadlineExceeded, `no message for ${millis} ms`);
        else if (idleMillisMax !== undefined) this.#expect(idleMillisMax, "idle");
      });
    }, millis).unref();
  }

  #clientEnded(): void {
    if (!this.#isOpen) return;
    if (this.#frames.isBetween) this.#guarded(() => this.#receiver.clientEnded());
    else this.#fail("cut-off", GRPC_STATUS.internal, "the last message is cut off");
  }

  #guarded(step: () => void): void {
    try {
      step();
    } catch (error) {
      if (error instanceof BadMessage) this.#fail("bad-message", GRPC_STATUS.internal, error.message);
      else if (!(error instanceof GrpcError))
        this.#fail("defect", GRPC_STATUS.internal, "a defect of the server", error);
      else if (error.why !== "compressed" && this.#isRefusalAnswered(error.why)) {
        this.#limits.failed(error.why);
        this.end();
      } else this.#fail(error.why, error.status, error.message);
    }
  }

  #isRefusalAnswered(why: MessageRefusal): boolean {
    return this.#receiver.refused?.(why) === true;
  }

  #fail(why: CallFailure, status: number, text: string, error?: unknown): void {
    this.#limits.failed(why, error);
    this.end(status, text);
  }

  /** Without a status, which would wait behind what the client does not read. */
  #drop(why: CallFailure): void {
    this.#limits.failed(why);
    this.#stream.close(constants.NGHTTP2_CANCEL);
    this.#over();
  }

  #limit(timeout: string): void {
    if (!this.#isOpen) return;
    const [, count, unit = ""] = TIMEOUT.exec(timeout) ?? [];
    if (count === undefined) return this.#fail("bad-timeout", GRPC_STATUS.internal, "grpc-timeout is no time");
    const millis = Math.min(TIMER_MILLIS_MAX, Number(count) * MILLIS[unit]!);
    this.#timer = setTimeout(() => this.#timeOver(), millis).unref();
  }

  #timeOver(): void {
    if (this.#stream.writableNeedDrain) this.#drop("time-over");
    else this.#fail("time-over", GRPC_STATUS.deadlineExceeded, "the call's time is over");
  }

  #startStall(): void {
    this.#stalled = setTimeout(
      () => this.#drop(this.#hasEnded ? "left-open" : "unread"),
      this.#limits.writeStallMillisMax,
    ).unref();
  }

  #stopStall(): void {
    clearTimeout(this.#stalled);
    this.#stalled = undefined;
  }

  #over(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#idle);
    this.#frames.discard();
    // What still comes is not waited for by anybody, and holds the stream.
    this.#stream.resume();
    try {
      this.#receiver.closed();
    } catch (error) {
      this.#limits.failed("defect", error);
    }
  }
}

export function ignore(): void {}

/** As gRPC writes texts into headers. */
function escaped(text: string): string {
  return text.replaceAll(/[^ -$&-~]/gu, encodeURIComponent);
}
