import { get } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

const LOOK_MILLIS = 100;
/** A server is out once it failed as many probes in a row, as a pod is. */
const FAILED_PROBES = 2;

/**
 * A balancer of connections, as a Kubernetes Service is: it knows no requests, shares connections out among the servers in
 * turn, and learns from readiness probes which ones take new ones. Connections that are open stay where they are.
 */
export class TcpBalancer {
  readonly #server: Server;
  readonly #failed = new Map<number, number>();
  #turn = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Connections for which no server was ready, or that the chosen one refused. */
  refused = 0;

  private constructor() {
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#share(client));
  }

  static async start(): Promise<TcpBalancer> {
    const balancer = new TcpBalancer();
    await new Promise<void>((resolve) => balancer.#server.listen(0, "127.0.0.1", resolve));
    balancer.#timer = setInterval(() => void balancer.#probe(), LOOK_MILLIS);
    return balancer;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** A server that gets connections from its first probe that is answered on. */
  add(port: number): void {
    this.#failed.set(port, FAILED_PROBES);
  }

  remove(port: number): void {
    this.#failed.delete(port);
  }

  /** Resolves once a server gets connections. */
  async takes(port: number): Promise<void> {
    while ((this.#failed.get(port) ?? FAILED_PROBES) >= FAILED_PROBES)
      await new Promise((resolve) => setTimeout(resolve, LOOK_MILLIS));
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#server.close();
  }

  async #probe(): Promise<void> {
    await Promise.all(
      [...this.#failed.keys()].map(async (port) => {
        const isReady = await new Promise<boolean>((resolve) => {
          get({ host: "127.0.0.1", port, path: "/readyz", agent: false }, (answer) => {
            answer.resume();
            resolve(answer.statusCode === 200);
          }).on("error", () => resolve(false));
        });
        const before = this.#failed.get(port);
        if (before !== undefined) this.#failed.set(port, isReady ? 0 : before + 1);
      }),
    );
  }

  #share(client: Socket): void {
    const ready = [...this.#failed].filter(([, failed]) => failed < FAILED_PROBES).map(([port]) => port);
    const port = ready[this.#turn++ % ready.length];
    if (port === undefined) {
      this.refused++;
      client.on("error", () => {}).resetAndDestroy();
      return;
    }
    const server = connect({ host: "127.0.0.1", port, allowHalfOpen: true, noDelay: true });
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ECONNREFUSED") this.refused++;
    });
    pass(client, server);
    pass(server, client);
  }
}

/** Bytes, the end and a reset of one side go on to the other. */
function pass(from: Socket, to: Socket): void {
  from.pipe(to);
  from.on("error", () => to.resetAndDestroy());
  from.on("close", () => {
    if (!to.writableEnded) to.end();
  });
}
