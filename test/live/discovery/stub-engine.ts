import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** An engine as far as looking after it goes: /v1/models and /metrics, each replaceable, on a port of its own. */
export class StubEngine {
  readonly url: string;
  readonly port: number;
  /** Requests seen, as "METHOD path authorization". */
  readonly seen: string[] = [];
  models: Answer = answer(200, modelsText("tiny"));
  metrics: Answer = answer(200, engineText({}));
  /** Most requests that were under way at once. */
  overlapMax = 0;
  #underWay = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
    this.url = `http://127.0.0.1:${this.port}`;
    server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
    server.on("request", (request, response) => {
      this.seen.push(`${request.method} ${request.url} ${request.headers.authorization ?? "-"}`);
      this.#underWay++;
      this.overlapMax = Math.max(this.overlapMax, this.#underWay);
      response.on("close", () => this.#underWay--);
      (request.url === "/metrics" ? this.metrics : this.models)(request, response);
    });
  }

  static async start(port = 0): Promise<StubEngine> {
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, "127.0.0.1", resolve);
    });
    return new StubEngine(server);
  }

  count(path: string): number {
    return this.seen.filter((line) => line.startsWith(`GET ${path} `)).length;
  }

  /** Closes the port and every connection, as a process that dies. */
  async kill(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}

export function answer(status: number, body: string): Answer {
  return (_, response) => {
    response.writeHead(status, { "content-type": "text/plain" }).end(body);
  };
}

export function modelsText(...ids: string[]): string {
  return JSON.stringify({ object: "list", data: ids.map((id) => ({ id, object: "model", owned_by: "vllm" })) });
}

export interface EngineFigures {
  readonly running?: number;
  readonly waiting?: number;
  readonly promptTokens?: number;
  readonly blocks?: number;
  /** Rank labels; one rank "0" by default. */
  readonly ranks?: readonly string[];
}

/** A metrics page of vLLM's names with these figures on every rank. */
export function engineText(figures: EngineFigures): string {
  const { running = 0, waiting = 0, promptTokens = 0, blocks = 101, ranks = ["0"] } = figures;
  const line = (name: string, value: number) => ranks.map((rank) => `${name}{engine="${rank}"} ${value}`).join("\n");
  return [
    line("vllm:num_requests_running", running),
    line("vllm:num_requests_waiting", waiting),
    line("vllm:kv_cache_usage_perc", 0.5),
    line("vllm:prompt_tokens_total", promptTokens),
    ...ranks.map((rank) => `vllm:cache_config_info{block_size="16",engine="${rank}",num_gpu_blocks="${blocks}"} 1.0`),
    "",
  ].join("\n");
}
