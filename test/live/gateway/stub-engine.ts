import { type AddressInfo, type Server, type Socket, createServer } from "node:net";
import { type TlsOptions, createServer as createSecureServer } from "node:tls";

/** A request as it came over the wire. */
export interface RawRequest {
  readonly method: string;
  readonly path: string;
  /** Names as sent. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Buffer;
  /** Counts the requests of this engine from 0. */
  readonly index: number;
  /** Counts the requests of this connection from 0. */
  readonly onConnection: number;
}

export type Reply = (request: RawRequest, socket: Socket) => void;

/** An engine that answers with bytes. Speaks just enough HTTP/1.1 to tell requests on kept connections apart. */
export class StubEngine {
  readonly #server: Server;
  readonly requests: RawRequest[] = [];
  readonly sockets = new Set<Socket>();
  readonly #waiting = new Set<() => void>();
  reply: Reply;
  readonly #scheme: "http" | "https";
  url = "";

  /** Speaks TLS where `tls` is given. */
  constructor(reply: Reply, tls?: TlsOptions) {
    this.reply = reply;
    this.#scheme = tls === undefined ? "http" : "https";
    const serve = (socket: Socket): void => this.#serve(socket);
    this.#server = tls === undefined ? createServer({ noDelay: true }, serve) : createSecureServer(tls, serve);
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.url = `${this.#scheme}://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  /** Resolves once so many requests have come. */
  asked(count: number): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (this.requests.length < count) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }

  /** Refuses new connections and cuts the open ones, like a killed process. */
  kill(): Promise<void> {
    // Node leaks a socket that is reset while it shuts down, and resets none of TLS.
    for (const socket of this.sockets) {
      if (socket.writableEnded || this.#scheme === "https") socket.destroy();
      else socket.resetAndDestroy();
    }
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #serve(socket: Socket): void {
    this.sockets.add(socket);
    let held: Buffer = Buffer.alloc(0);
    let onConnection = 0;
    socket.on("error", () => {});
    socket.on("close", () => this.sockets.delete(socket));
    socket.on("data", (chunk: Buffer) => {
      held = Buffer.concat([held, chunk]);
      for (;;) {
        const end = held.indexOf("\r\n\r\n");
        if (end < 0) return;
        const [line, ...lines] = held.toString("latin1", 0, end).split("\r\n");
        const headers = lines.map((header): [string, string] => {
          const colon = header.indexOf(":");
          return [header.slice(0, colon), header.slice(colon + 1).trim()];
        });
        const length = Number(headers.find(([name]) => name.toLowerCase() === "content-length")?.[1] ?? 0);
        if (held.length < end + 4 + length) return;
        const body = held.subarray(end + 4, end + 4 + length);
        held = held.subarray(end + 4 + length);
        const [method = "", path = ""] = line!.split(" ");
        const request = { method, path, headers, body, index: this.requests.length, onConnection: onConnection++ };
        this.requests.push(request);
        for (const look of this.#waiting) look();
        this.reply(request, socket);
      }
    });
  }
}

export function headerOf(request: RawRequest, name: string): string | undefined {
  return request.headers.find(([key]) => key.toLowerCase() === name)?.[1];
}

/** Bytes of a JSON answer. */
export function jsonReply(status: number, body: unknown, headers = ""): string {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return `HTTP/1.1 ${status} Status\r\ncontent-type: application/json\r\n${headers}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
}

export const STREAM_HEAD =
  "HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";
export const STREAM_END = "0\r\n\r\n";

/** One HTTP chunk. */
export function chunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

/** One event in one HTTP chunk, as vLLM sends it. */
export function event(data: unknown): string {
  return chunk(`data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`);
}

export function roleChunk(): string {
  return event({ id: "c", choices: [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }] });
}

export function tokenChunk(text: string, finish: string | null = null): string {
  return event({ id: "c", choices: [{ index: 0, delta: { content: text }, finish_reason: finish }] });
}

export function chatAnswer(text: string, finish = "stop"): unknown {
  return {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: "tiny",
    choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: finish }],
    usage: {
      prompt_tokens: 29,
      total_tokens: 41,
      completion_tokens: 12,
      prompt_tokens_details: { cached_tokens: 16, created_cache_tokens: 0 },
    },
  };
}

/** A whole stream of n tokens. */
export function streamOf(n: number): string {
  const tokens = Array.from({ length: n }, (_, i) => tokenChunk(` t${i}`, i === n - 1 ? "length" : null));
  return STREAM_HEAD + roleChunk() + tokens.join("") + event("[DONE]") + STREAM_END;
}
