import type { Socket } from "node:net";
import { type AddressInfo, type Server, createServer } from "node:net";
import { jsonReply, STREAM_END, STREAM_HEAD, event } from "../live/gateway/stub-engine.ts";

/** One request as it came over the wire, and its answer's socket. */
export interface SocketRequest {
  /** The gateway's own. */
  readonly id: string;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** A completion of token ids, by which an answer goes on that broke elsewhere. */
  readonly goesOn: boolean;
  /** It is to compute the prompt alone, for another engine. */
  readonly prefills: boolean;
  /** Name of the prompt that another engine computed for it. */
  readonly fetches: string | undefined;
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
    const server = createServer({ noDelay: true }, (socket) => this.#serve(socket));
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

  begin({ socket, goesOn, prefills, promptTokens }: SocketRequest): void {
    if (prefills) return;
    const delta = { role: "assistant", content: "" };
    const prompt_token_ids = Array.from({ length: promptTokens }, () => 1);
    const role = event({ id: "c", choices: [{ index: 0, delta, finish_reason: null }], prompt_token_ids });
    socket.write(goesOn ? STREAM_HEAD : STREAM_HEAD + role);
  }

  token({ socket, goesOn }: SocketRequest, isLast: boolean): void {
    const end = { finish_reason: isLast ? "stop" : null, token_ids: [2] };
    const choice = goesOn ? { index: 0, text: " t", ...end } : { index: 0, delta: { content: " t" }, ...end };
    socket.write(event({ id: "c", choices: [choice] }));
  }

  end(request: SocketRequest): void {
    this.#close(request);
    request.socket.write(event("[DONE]") + STREAM_END);
  }

  /** The prompt is computed, and waits by that name. */
  prefilled(request: SocketRequest, name: string): void {
    this.#close(request);
    const choices = [{ index: 0, message: { role: "assistant", content: " t" }, finish_reason: "length" }];
    const params = { do_remote_prefill: true, do_remote_decode: false, remote_request_id: name };
    request.socket.write(jsonReply(200, { id: "c", choices, kv_transfer_params: params }));
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
      const goesOn = held.startsWith("POST /v1/completions");
      const { outputTokens, promptTokens } = goesOn ? rest(held.slice(end)) : whole(held);
      const { kv_transfer_params: params } = JSON.parse(held.slice(end)) as { kv_transfer_params?: TransferParams };
      const id = /x-request-id: (\S+)/i.exec(held)?.[1] ?? "";
      held = held.slice(end + 4 + length);
      const [prefills, fetches] = [params?.do_remote_decode === true, params?.remote_request_id ?? undefined];
      under = { id, outputTokens, promptTokens, goesOn, prefills, fetches, socket, open: true };
      this.open.add(under);
      this.#came(under);
    });
  }
}

interface TransferParams {
  readonly do_remote_decode: boolean;
  readonly remote_request_id?: string | null;
}

function whole(request: string) {
  const asked = /say (\d+) after (\d+)/.exec(request);
  return { outputTokens: Number(asked?.[1]), promptTokens: Number(asked?.[2]) };
}

function rest(body: string) {
  const asked = JSON.parse(body) as { readonly prompt: readonly number[]; readonly max_tokens: number };
  return { outputTokens: asked.max_tokens, promptTokens: asked.prompt.length };
}
