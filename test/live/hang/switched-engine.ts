import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";

/**
 * What an engine answers: all, its health check alone, or all but requests, its metrics page as it last was (an engine
 * that died behind its server). It accepts everything.
 */
type Answers = "all" | "health" | "no-requests";

/** An engine of one model whose ways can be switched; what it left unanswered stays so. */
export class SwitchedEngine {
  readonly url: string;
  answers: Answers = "all";
  /** Requests that it answered. */
  served = 0;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("request", (request, response) => this.#answer(request, response));
  }

  static async start(t: TestContext): Promise<SwitchedEngine> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const engine = new SwitchedEngine(server);
    t.after(() => engine.#server.closeAllConnections());
    t.after(() => engine.#server.close());
    return engine;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    if (request.url === "/health") response.end();
    else if (this.answers === "health") request.resume();
    else if (request.url === "/v1/models") response.end('{"object":"list","data":[{"id":"tiny","object":"model"}]}');
    else if (request.url === "/metrics") response.end(this.#page());
    else if (this.answers === "all") void this.#complete(request, response);
    else request.resume();
  }

  #page(): string {
    return [
      'vllm:num_requests_running{engine="0"} 0',
      'vllm:num_requests_waiting{engine="0"} 0',
      `vllm:generation_tokens_total{engine="0"} ${this.served}`,
      `vllm:iteration_tokens_total_count{engine="0"} ${this.served}`,
      'vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="1000"} 1.0',
      "",
    ].join("\n");
  }

  async #complete(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const { stream } = JSON.parse(Buffer.concat(chunks).toString()) as { readonly stream: boolean };
    this.served++;
    if (stream) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(
        `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "a" }, finish_reason: "stop" }] })}\n\ndata: [DONE]\n\n`,
      );
    } else {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ choices: [{ index: 0, message: { content: "a" }, finish_reason: "stop" }] }));
    }
  }
}
