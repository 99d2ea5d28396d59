import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import type { Server } from "node:http";
import { Server as SecureServer } from "node:https";
import type { Socket } from "node:net";
import { nowMicros } from "../base/clock.ts";

/** A client's connection, as far as it matters what waits on it. */
export interface UnreadSocket {
  /** Bytes that its client has yet to take. */
  readonly writableLength: number;
  destroy(): void;
}

interface Unread {
  /** As it was last seen. */
  bytes: number;
  since: Micros;
}

/** A client that is given an answer has so long before it can be cut for another's sake. */
export const UNREAD_MICROS_MIN = 2 * MICROS_PER_SECOND;

/**
 * Answers that clients have yet to take, over all connections. One that streams waits for its client; what is written in
 * one piece does not, and takes memory until it is read. Beyond the bound no more of such answers is read from engines, and
 * the connection is cut on which nothing has moved for longest, until there is room again. No clock: it gets its time.
 */
export class UnreadAnswers {
  /** In force now. */
  bytesMax: number;
  readonly #cut: () => void;
  /** Of those in whose time nothing was taken, the longest first. */
  readonly #unread = new Map<UnreadSocket, Unread>();
  #bytes = 0;
  readonly #waiting: (() => void)[] = [];
  readonly #beginners: (() => void)[] = [];

  /** `cut` is notified of every connection that is cut. */
  constructor(bytesMax: number, cut: () => void) {
    this.bytesMax = bytesMax;
    this.#cut = cut;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get isFull(): boolean {
    return this.#bytes > this.bytesMax;
  }

  /** Nobody is known to have something unread. */
  get isEmpty(): boolean {
    return this.#unread.size === 0;
  }

  /** Notifies of the first that has something unread, whenever nobody had. */
  onBegin(begun: () => void): void {
    this.#beginners.push(begun);
  }

  /** Looks at what waits on a connection: after an answer was written to it, and now and then. */
  look(socket: UnreadSocket, at: Micros): void {
    const bytes = socket.writableLength;
    const unread = this.#unread.get(socket);
    if (unread === undefined ? bytes === 0 : bytes === unread.bytes) return;
    const { isEmpty } = this;
    this.leave(socket);
    if (bytes === 0) return;
    this.#unread.set(socket, { bytes, since: at });
    this.#bytes += bytes;
    if (isEmpty) for (const begun of this.#beginners) begun();
  }

  /** The connection is closed. */
  leave(socket: UnreadSocket): void {
    this.#bytes -= this.#unread.get(socket)?.bytes ?? 0;
    this.#unread.delete(socket);
  }

  /** Cuts what has to be cut, once all connections were looked at; where there is room, those that wait for it go on. */
  settle(at: Micros): void {
    for (const [socket, { since }] of this.#unread) {
      if (!this.isFull || at - since < UNREAD_MICROS_MIN) break;
      this.leave(socket);
      this.#cut();
      socket.destroy();
    }
    if (this.isFull) return;
    for (const goOn of this.#waiting.splice(0)) goOn();
  }

  /** Calls back once there is room. */
  onRoom(goOn: () => void): void {
    this.#waiting.push(goOn);
  }
}

/** Much less than the time for which a client is let be: what engines send meanwhile is held. */
const LOOK_MILLIS = 50;
/** While nobody has anything unread: an idle gateway wakes for each look, and each wake finds its code out of the caches. */
const QUIET_LOOK_MILLIS = 250;

/** Looks at all connections of a server now and then, more often while something waits on one; until it is closed. */
export function watchUnread(server: Server, unread: UnreadAnswers): void {
  const sockets = new Set<Socket>();
  // Of a connection with TLS, what is below it has nothing to wait for.
  server.on(server instanceof SecureServer ? "secureConnection" : "connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => {
      sockets.delete(socket);
      unread.leave(socket);
    });
  });
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  const goOn = (): void => {
    clearTimeout(timer);
    if (isClosed) return;
    timer = setTimeout(look, unread.isEmpty ? QUIET_LOOK_MILLIS : LOOK_MILLIS).unref();
  };
  const look = (): void => {
    const at = nowMicros();
    for (const socket of sockets) unread.look(socket, at);
    unread.settle(at);
    goOn();
  };
  goOn();
  unread.onBegin(goOn);
  server.once("close", () => {
    clearTimeout(timer);
    isClosed = true;
  });
}
