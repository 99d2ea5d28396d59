import type { Socket } from "node:net";
import { type AddressInfo, type Server, createServer } from "node:net";
import { jsonReply, roleChunk, STREAM_END, STREAM_HEAD, event, tokenChunk } from "../live/gateway/stub-engine.ts";

/** One request as it came over the wire, and its answer's socket. */
export interface SocketRequest {
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly socket: Socket;
  open: boolean;
}

/** Speaks vLLM's side of a stream over real sockets, as whoever holds it says: no timers, no will of its own. */
export class SocketEngine {
  /** Requests whose answers are not over. */
  readonly open = new Set<SocketRequest>();
  url = "";
  #server: Server | undefined;
  #port = 0;
  readonly #sockets = new Set<Socket>();
  readonly #came: (request: SocketRequest) => void;
  readonly #left: (request: SocketRequest) => void;

  constructor(came: (request: SocketRequest) => void, left: (request: SocketRequest) => void) {
    this.#came = came;
    this.#left = left;
  }

  /** On the port that it had before, if it had one. */
  async listen(): Promise<void> {
    const server = createServer((socket) => this.#serve(socket));
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(this.#port, "127.0.0.1", resolve));
    this.#port = (server.address() as AddressInfo).port;
    this.url = `http://127.0.0.1:${this.#port}`;
  }

  /** Connections go on; no new one is accepted. */
  async deafen(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const busy = new Set([...this.open].map(({ socket }) => socket));
    for (const socket of this.#sockets) if (!busy.has(socket)) socket.destroy();
    server.close();
    await new Promise<void>((resolve) => setImmediate(resolve));
  }

  begin({ socket }: SocketRequest): void {
    socket.write(STREAM_HEAD + roleChunk());
  }

  token(request: SocketRequest, isLast: boolean): void {
    request.socket.write(tokenChunk(" t", isLast ? "stop" : null));
  }

  end(request: SocketRequest): void {
    this.#close(request);
    request.socket.write(event("[DONE]") + STREAM_END);
  }

  refuse(request: SocketRequest, status: number, message: string): void {
    this.#close(request);
    request.socket.write(jsonReply(status, { error: { message, type: "error", param: null, code: status } }));
  }

  reset(request: SocketRequest): void {
    this.#close(request);
    request.socket.resetAndDestroy();
  }

  async close(): Promise<void> {
    await this.deafen();
    for (const socket of this.#sockets) socket.destroy();
  }

  #close(request: SocketRequest): void {
    request.open = false;
    this.open.delete(request);
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    let held = "";
    let under: SocketRequest | undefined;
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#sockets.delete(socket);
      if (under?.open !== true) return;
      this.#close(under);
      this.#left(under);
    });
    socket.on("data", (chunk: Buffer) => {
      held += chunk.toString("latin1");
      const end = held.indexOf("\r\n\r\n");
      const length = Number(/content-length: (\d+)/i.exec(held)?.[1] ?? 0);
      if (end < 0 || held.length < end + 4 + length) return;
      const asked = /say (\d+) after (\d+)/.exec(held);
      held = held.slice(end + 4 + length);
      under = { outputTokens: Number(asked?.[1]), promptTokens: Number(asked?.[2]), socket, open: true };
      this.open.add(under);
      this.#came(under);
    });
  }
}
