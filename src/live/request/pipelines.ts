import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { passOverRequests } from "../http/node-parser.ts";

/** With the answer under way on it, as Node's server keeps it. */
type AnsweringSocket = Socket & { readonly _httpMessage?: ServerResponse | null };

type Serve = (incoming: IncomingMessage, outgoing: ServerResponse) => void;

export interface PipelineOptions {
  /** Requests of one connection that may wait for the answers before theirs. */
  readonly waitingMax: () => number;
  /** The same of all connections. */
  readonly waitingOfAllMax: () => number;
  /** Is notified of every connection that is cut since more came. */
  readonly cut: () => void;
}

/**
 * Requests that came while the answer to an earlier one of their connection was owed: they are served one after the other.
 * Nothing more is read from the connection meanwhile. What one read brought is parsed at once, so a connection on which too
 * many wait is cut behind the last answer that it is owed, and what is left of that read is passed over. So it is where what
 * follows whole requests is none.
 */
export class Pipelines {
  readonly #options: PipelineOptions;
  /** Those that wait, of the connections that ever had any. */
  readonly #waiting = new WeakMap<Socket, number>();
  /** Whose turn comes last. */
  readonly #last = new WeakMap<Socket, ServerResponse>();
  #waitingOfAll = 0;

  constructor(options: PipelineOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waitingOfAll;
  }

  /** Calls `serve` once the answer can go out, which has no socket yet. Never, where the connection ends before. */
  wait(incoming: IncomingMessage, outgoing: ServerResponse, serve: Serve): void {
    const { socket } = incoming;
    if (socket.destroyed) return;
    const waiting = (this.#waiting.get(socket) ?? 0) + 1;
    const { waitingMax, waitingOfAllMax, cut } = this.#options;
    if (waiting > waitingMax() || this.#waitingOfAll >= waitingOfAllMax()) {
      cut();
      passOverRequests(socket);
      this.endBehind(socket);
      // It has no turn, and so nothing is read from here on.
      this.#wait(socket);
      return;
    }
    this.#wait(socket);
    this.#last.set(socket, outgoing);
    outgoing.once("socket", () => {
      this.#count(socket, -1);
      // The answer before may have ended the connection.
      if (!socket.writable) return;
      if (!this.#waits(socket)) socket.resume();
      serve(incoming, outgoing);
    });
  }

  /** Ends the connection behind the last answer that it is owed for a whole request; false where there is none. */
  endBehind(socket: AnsweringSocket): boolean {
    const waits = this.#waiting.has(socket) && this.#waits(socket);
    const answer = waits ? this.#last.get(socket) : socket._httpMessage;
    if (answer?.req.complete !== true || answer.writableFinished) return false;
    answer.shouldKeepAlive = false;
    // Node's mark of an answer after which it ends the connection.
    Object.defineProperty(answer, "_last", { configurable: true, writable: true, value: true });
    return true;
  }

  #wait(socket: Socket): void {
    if (!this.#waiting.has(socket)) this.#watch(socket);
    this.#count(socket, 1);
    socket.pause();
  }

  #watch(socket: Socket): void {
    // Node lets a connection go on with every message that it has read to its end. A pause that came meanwhile has stopped
    // its stream, but not what is below: that goes by the event.
    socket.on("resume", () => {
      if (!this.#waits(socket)) return;
      socket.pause();
      socket.emit("pause");
    });
    socket.once("close", () => this.#count(socket, -this.#waiting.get(socket)!));
  }

  #waits(socket: Socket): boolean {
    return this.#waiting.get(socket)! > 0;
  }

  #count(socket: Socket, more: number): void {
    this.#waitingOfAll += more;
    this.#waiting.set(socket, (this.#waiting.get(socket) ?? 0) + more);
  }
}
