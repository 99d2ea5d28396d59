import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** Another router, the least that there can be: requests go to its engines in turn, answers come back as they are. */
export class FakeRouter {
  readonly #server: Server;
  readonly #engines: readonly string[];
  readonly #header: string | undefined;
  #turn = 0;
  /** Where each request went, by its id. */
  readonly went = new Map<string, string>();

  /** `header` of its answers names the engine; none does where it is undefined. */
  constructor(engines: readonly string[], header?: string) {
    this.#engines = engines;
    this.#header = header;
    this.#server = createServer((incoming, outgoing) => this.#serve(incoming, outgoing));
  }

  /** Port 0 takes a free one. */
  async start(port = 0): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(port, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #serve(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const engine = this.#engines[this.#turn++ % this.#engines.length]!;
    const { method, url, headers } = incoming;
    if (method === "POST") this.went.set(String(headers["x-request-id"]), engine);
    const sent = request(engine + url!, { method, headers }, (answer) => {
      const named = this.#header === undefined ? {} : { [this.#header]: engine };
      outgoing.writeHead(answer.statusCode!, { ...answer.headers, ...named });
      answer.pipe(outgoing);
    });
    sent.on("error", () => outgoing.destroy());
    outgoing.on("close", () => sent.destroy());
    incoming.pipe(sent);
  }
}
