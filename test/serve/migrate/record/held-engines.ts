import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";

type Load = readonly [waiting: number, running: number, kv: number];

/** Each has an address of its own, and all the same port, as pods have. */
export const engineHost = (i: number): string => `127.0.0.${i + 5}`;

/** Engines that hold every request until they are told to answer, and whose metrics pages state what they are told. */
export class HeldEngines {
  readonly ports: number[] = [];
  readonly #servers: ReturnType<typeof createServer>[] = [];
  readonly #held = new Map<string, ServerResponse>();
  readonly #pagesRead: number[] = [];
  #loads: readonly Load[] = [];
  /** Who waits for the next request: its engine. */
  #arrived: ((engine: number) => void) | undefined;
  #asked = "";

  async start(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const server = createServer((request, response) => void this.#answer(i, request, response));
      await new Promise<void>((resolve) => server.listen(this.ports[0] ?? 0, engineHost(i), resolve));
      this.#servers.push(server);
      this.ports.push((server.address() as AddressInfo).port);
      this.#pagesRead.push(0);
    }
  }

  /** The engine that the next request comes to, which is then held under that name. */
  next(id: string): Promise<number> {
    this.#asked = id;
    return new Promise((resolve) => (this.#arrived = resolve));
  }

  end(id: string): void {
    const response = this.#held.get(id)!;
    this.#held.delete(id);
    const usage = { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 };
    const choices = [{ index: 0, text: "x", finish_reason: "length", logprobs: null }];
    response.end(
      JSON.stringify({ id: `cmpl-${id}`, object: "text_completion", created: 1, model: "llama", choices, usage }),
    );
  }

  /** Changes the metrics pages, and waits until each was read whole twice since: the second read began after it. */
  async state(loads: readonly Load[]): Promise<void> {
    this.#loads = loads;
    const until = this.#pagesRead.map((read) => read + 2);
    while (this.#pagesRead.some((read, i) => read < until[i]!)) await new Promise((next) => setTimeout(next, 5));
    await new Promise((next) => setTimeout(next, 30));
  }

  close(): void {
    for (const server of this.#servers) {
      server.closeAllConnections();
      server.close();
    }
  }

  async #answer(engine: number, request: IncomingMessage, response: ServerResponse): Promise<void> {
    for await (const _ of request) continue;
    if (request.method === "POST" && request.url?.endsWith("/completions") === true) {
      response.setHeader("content-type", "application/json");
      this.#held.set(this.#asked, response);
      this.#arrived?.(engine);
      return;
    }
    if (request.url === "/metrics") {
      response.end(this.#page(engine));
      this.#pagesRead[engine]!++;
      return;
    }
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({ object: "list", data: [{ id: "llama", object: "model", owned_by: "vllm", created: 1 }] }),
    );
  }

  #page(engine: number): string {
    const [waiting, running, kv] = this.#loads[engine] ?? [0, 0, 0];
    const gauge = (name: string, value: number): string =>
      `# TYPE vllm:${name} gauge\nvllm:${name}{model_name="llama"} ${value}\n`;
    return (
      gauge("num_requests_waiting", waiting) +
      gauge("num_requests_running", running) +
      gauge("kv_cache_usage_perc", kv) +
      `# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{block_size="16",num_gpu_blocks="100000"} 1\n`
    );
  }
}
