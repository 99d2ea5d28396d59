import type { Socket } from "node:net";

import type { AnswerHeaders } from "../../http/headers.ts";
import { readPlainHead } from "./plain-head.ts";
import { READ_SLAB } from "./read-slab.ts";

/** Whose answers are read here. */
export interface PlainSink {
  plainStarted(headers: AnswerHeaders): void;
  plainData(piece: Buffer): void;
  plainEnded(): void;
  /** Bytes came that nobody asked for. */
  strayBytes(): void;
  /** Undici reads the answer from here on; its head may have been read already. */
  leftToUndici(headRead: boolean): void;
}

/**
 * Reads answers in one piece whose head is of the plainest form, from a connection on which undici waits for an answer all
 * the while. What is in any way unusual is left to undici from its first byte on, and what comes behind the body or in its
 * place too.
 */
export class PlainAnswers {
  /** What came last came from here. */
  socket: Socket | undefined;
  /** What undici needs before the bytes at hand, since it did not see the head; empty where it needs nothing. */
  before = "";
  readonly #sink: PlainSink;
  /** Answers with a longer body are undici's. */
  readonly #bytesMax: number;
  /** `idle`: nothing was asked; `sent`: an answer may begin; `body`: the head was read. */
  #phase: "undici" | "idle" | "sent" | "body" = "undici";
  /** Of the body, still to come. */
  #left = 0;

  constructor(sink: PlainSink, bytesMax: number) {
    this.#sink = sink;
    this.#bytesMax = bytesMax;
  }

  get isIdle(): boolean {
    return this.#phase === "idle";
  }

  /** What comes is read here, not by undici. */
  get reads(): boolean {
    return this.#phase !== "undici";
  }

  /** A request goes out; what comes from now on is its answer. */
  sent(): void {
    this.#phase = "sent";
  }

  /** All that comes is undici's. */
  leave(): void {
    this.#phase = "undici";
  }

  /** Takes what was read into the shared buffer. False: it is for undici, behind `before`. */
  take(socket: Socket, bytes: number): boolean {
    this.socket = socket;
    switch (this.#phase) {
      case "undici":
        return false;
      case "idle":
        // Empty lines between two messages mean nothing.
        if (isBlank(bytes)) return true;
        this.#phase = "undici";
        this.#sink.strayBytes();
        return true;
      case "sent":
        return this.#begin(socket, bytes);
      case "body":
        return this.#goOn(bytes);
    }
  }

  #begin(socket: Socket, bytes: number): boolean {
    const head = socket.readableLength > 0 ? undefined : readPlainHead(READ_SLAB.read, bytes);
    if (head === undefined || head.bodyBytes > this.#bytesMax || bytes - head.bodyAt > head.bodyBytes) {
      this.#leaveToUndici("");
      return false;
    }
    this.#phase = "body";
    this.#left = head.bodyBytes;
    this.#sink.plainStarted(head.headers);
    this.#data(head.bodyAt, bytes);
    return true;
  }

  #goOn(bytes: number): boolean {
    if (bytes > this.#left) {
      this.#leaveToUndici(`HTTP/1.1 200 OK\r\ncontent-length: ${this.#left}\r\n\r\n`);
      return false;
    }
    this.#data(0, bytes);
    return true;
  }

  #data(from: number, to: number): void {
    // Whoever got the head may have ended the connection.
    if (this.#phase !== "body") return;
    this.#left -= to - from;
    if (to > from) this.#sink.plainData(READ_SLAB.copied(to, from));
    if (this.#left > 0 || !this.reads) return;
    this.#phase = "idle";
    this.#sink.plainEnded();
  }

  #leaveToUndici(before: string): void {
    this.#phase = "undici";
    this.before = before;
    this.#sink.leftToUndici(before !== "");
  }
}

function isBlank(bytes: number): boolean {
  for (let i = 0; i < bytes; i++) if (READ_SLAB.read[i] !== CR && READ_SLAB.read[i] !== LF) return false;
  return true;
}

const CR = 13;
const LF = 10;
