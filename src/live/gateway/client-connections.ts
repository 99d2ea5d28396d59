import type { Server, ServerResponse } from "node:http";
import { Server as SecureServer } from "node:https";
import type { Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { SlotList, type Slotted } from "#core/base/slot-list.ts";

/** With the answer under way on it, as Node's server keeps it. */
type ClientSocket = Socket & { readonly _httpMessage?: ServerResponse | null };

interface Connection extends Slotted {
  readonly socket: ClientSocket;
  /** Passed on it in both directions when it was last looked at, and since when it is so. */
  bytes: number;
  sinceMillis: number;
  /** An answer announced its end. */
  isAnnounced: boolean;
  /** It came as the notice was over. */
  isLate: boolean;
}

const ANNOUNCED_SHARE = 1 / 4;

/**
 * Clients' connections, and how they end with the gateway without a request being lost. In HTTP/1.1 a server cannot take
 * back its readiness for another request: one that crosses the end of its connection on the way is refused by the system.
 * So a client learns first, by `connection: close` in an answer, and ends the connection itself. Where it does not, or has
 * no answer in which it could learn, the connection ends once it was idle for so long that nothing is on the way. What
 * still comes before that is served.
 */
export class ClientConnections {
  readonly #open = new SlotList<Connection>();
  /** Those that are open, by their sockets, once the gateway leaves. */
  #bySocket: Map<Socket, Connection> | undefined;
  #isNoticeOver = false;
  #isInsistent = false;

  /** Follows the connections of a server. */
  follow(server: Server): void {
    server.on(server instanceof SecureServer ? "secureConnection" : "connection", (socket: Socket) => {
      const isLate = this.#isNoticeOver;
      const connection = { socket, bytes: 0, sinceMillis: performance.now(), isAnnounced: false, isLate, slot: 0 };
      this.#open.add(connection);
      this.#bySocket?.set(socket, connection);
      socket.once("close", () => {
        this.#open.remove(connection);
        this.#bySocket?.delete(socket);
      });
    });
  }

  /** From now on every answer whose head was not sent yet announces the end of its connection. */
  leave(): void {
    const bySocket = new Map<Socket, Connection>();
    this.#open.each((connection) => bySocket.set(connection.socket, connection));
    this.#bySocket = bySocket;
    this.#open.each(({ socket }) => {
      if (socket._httpMessage) this.answers(socket._httpMessage);
    });
  }

  /** From now on connections end as they are idle, and later ones are known as such. */
  endNotice(): void {
    this.#isNoticeOver = true;
  }

  /** From now on a connection whose end was announced before ends with its answer, whether its client takes notice or not. */
  insist(): void {
    this.#isInsistent = true;
  }

  /** An answer begins. */
  answers(answer: ServerResponse): void {
    const connection = this.#bySocket?.get(answer.req.socket);
    if (connection === undefined || answer.headersSent) return;
    announceEnd(answer, this.#isInsistent && connection.isAnnounced);
    connection.isAnnounced = true;
  }

  /** Whether a connection came so late that its balancer should have known. */
  isLate(socket: Socket): boolean {
    return this.#bySocket?.get(socket)?.isLate === true;
  }

  /**
   * Ends connections that were idle for so long, or for a quarter of it where their end was announced; in the notice
   * those alone. Resolves with how many are left of those that are not late.
   */
  async endIdle(idleMillis: number): Promise<number> {
    // What came while the loop was busy is read now, before it is judged that nothing comes.
    await setImmediate();
    const nowMillis = performance.now();
    let left = 0;
    this.#open.each((connection) => {
      const { isAnnounced, isLate } = connection;
      const millis = idleFor(connection, nowMillis);
      const isIdle = isAnnounced ? millis >= idleMillis * ANNOUNCED_SHARE : this.#isNoticeOver && millis >= idleMillis;
      if (isIdle) end(connection.socket);
      else if (!isLate) left++;
    });
    return left;
  }
}

/** At once: what came a turn of the loop later would be read, and could not be answered. TLS has a farewell to write. */
function end(socket: Socket): void {
  if ("encrypted" in socket) socket.destroySoon();
  else socket.destroy();
}

/** Milliseconds; 0 while anything is under way. */
function idleFor(connection: Connection, nowMillis: number): number {
  const { socket } = connection;
  const bytes = socket.bytesRead + socket.bytesWritten;
  const isQuiet = bytes === connection.bytes && socket.writableLength === 0 && !socket._httpMessage;
  if (isQuiet) return nowMillis - connection.sinceMillis;
  connection.bytes = bytes;
  connection.sinceMillis = nowMillis;
  return 0;
}

/**
 * Has an answer carry `connection: close`, and leaves the end to the client, unless it asked for it itself, speaks
 * HTTP/1.0, where the end of an answer may be that of its connection, or has not sent its whole request. Node would
 * end the connection with the last byte, whatever is on the way.
 */
function announceEnd(answer: ServerResponse, isLast: boolean): void {
  const isLeftToClient = !isLast && answer.shouldKeepAlive && answer.req.httpVersionMinor > 0;
  answer.shouldKeepAlive = false;
  if (!isLeftToClient) return;
  // Node's mark of an answer after which it ends the connection.
  Object.defineProperty(answer, "_last", { configurable: true, get: () => !answer.req.complete, set: () => {} });
}
