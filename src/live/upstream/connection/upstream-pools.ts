import { type buildConnector, Client, type Dispatcher } from "undici";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { DirectoryListener, EndpointEntry } from "../../endpoints/endpoint-directory.ts";
import type { GatewayLimits } from "../../http/limits.ts";
import { EngineConnections } from "../../tls/connections.ts";
import type { OnReadOpts } from "node:net";
import { UpstreamReads } from "./upstream-reads.ts";

/** Connections to one endpoint. */
export interface Upstream {
  readonly entry: EndpointEntry;
  readonly clients: UpstreamClients;
  /** Requests handed to the clients and not finished; never above the connection limit. */
  inFlight: number;
}

/** One pool per endpoint, there while the endpoint is in the directory. */
export class UpstreamPools implements DirectoryListener {
  readonly #limits: GatewayLimits;
  readonly #upstreams = new Map<EndpointId, Upstream>();
  /** Pools of endpoints that left, while requests in flight there go on. */
  readonly #leaving = new Set<UpstreamClients>();

  readonly #connections: EngineConnections;

  constructor(limits: GatewayLimits, connections: EngineConnections = new EngineConnections()) {
    this.#limits = limits;
    this.#connections = connections;
  }

  joined(entry: EndpointEntry): void {
    this.left(entry);
    const { connectMillisMax } = this.#limits;
    const secured = (onread: OnReadOpts): buildConnector.connector =>
      this.#connections.connector(connectMillisMax, () => entry.serverName, onread);
    const connect = entry.url.startsWith("https:") ? secured : undefined;
    const clients = new UpstreamClients(entry.url, this.#limits, connect);
    this.#upstreams.set(entry.id, { entry, clients, inFlight: 0 });
  }

  left(entry: EndpointEntry): void {
    const upstream = this.#upstreams.get(entry.id);
    if (upstream === undefined) return;
    this.#upstreams.delete(entry.id);
    this.#leaving.add(upstream.clients);
    void upstream.clients.close().finally(() => this.#leaving.delete(upstream.clients));
  }

  get(id: EndpointId): Upstream | undefined {
    return this.#upstreams.get(id);
  }

  async destroy(): Promise<void> {
    const all = [...[...this.#upstreams.values()].map(({ clients }) => clients), ...this.#leaving];
    this.#upstreams.clear();
    await Promise.all(all.map((clients) => clients.destroy()));
  }
}

/**
 * Connections to one endpoint, each with one request at a time. The last one that became free is used again first, so
 * that those which sparse traffic does not need time out.
 *
 * Undici's own pool does the same, but is notified of each client's every change between busy and free. And a client
 * that may hold one request alone waits a turn of the event loop after each answer before it looks whether there is
 * another; it is set here so that it may hold two, and never gets them. The turn that it waits before each request, for
 * stray bytes on a kept connection, stays.
 *
 * Undici's own header and body timeouts are off: a long prefill or a slow generation is no fault, and the limits are
 * ours. `connect` makes the connections where they are to be made in another way than by undici. HTTP/2 is off: many
 * streams would share one connection's window.
 */
export class UpstreamClients {
  readonly #url: string;
  readonly #options: Client.Options;
  readonly #connect: ((onread: OnReadOpts) => buildConnector.connector) | undefined;
  readonly #all: UpstreamConnection[] = [];
  /** Those that became free first are first. */
  readonly #free: UpstreamConnection[] = [];

  constructor(url: string, limits: GatewayLimits, connect?: (onread: OnReadOpts) => buildConnector.connector) {
    this.#url = url;
    this.#options = {
      pipelining: REQUESTS_ALLOWED,
      keepAliveTimeout: limits.upstreamKeepAliveMillis,
      keepAliveMaxTimeout: limits.upstreamKeepAliveMillis,
      headersTimeout: 0,
      bodyTimeout: 0,
      connectTimeout: limits.connectMillisMax,
      allowH2: false,
    };
    this.#connect = connect;
  }

  /** A connection without a request. The caller gives it back when its request is over. */
  take(): UpstreamConnection {
    return this.#free.pop() ?? this.#make();
  }

  giveBack(connection: UpstreamConnection): void {
    this.#free.push(connection);
  }

  /** Resolves when the requests in flight are over. */
  async close(): Promise<void> {
    await Promise.all(this.#all.map(({ client }) => client.close()));
  }

  async destroy(): Promise<void> {
    await Promise.all(this.#all.map(({ client }) => client.destroy()));
  }

  #make(): UpstreamConnection {
    const connection = new UpstreamConnection((onread) => {
      const connect = this.#connect?.(onread) ?? { onread };
      return new Client(this.#url, { ...this.#options, connect });
    });
    this.#all.push(connection);
    return connection;
  }
}

const REQUESTS_ALLOWED = 2;

/** A request with a body that is there. */
interface ConnectionRequest {
  readonly path: string;
  /** Names and values in turn; nothing of the connection or of the body's length is among them. */
  readonly headers: string[];
  readonly body: Buffer;
}

/**
 * A connection that is made when it is needed, and made anew where it closed, with one request at a time. All but the
 * payload of streams (`UpstreamReads`) is undici's.
 */
export class UpstreamConnection {
  readonly client: Client;
  readonly reads = new UpstreamReads();
  /** Answers that ended since it was made last. */
  #answers = 0;

  /** Makes its client with what is read from its connections. */
  constructor(makeClient: (onread: OnReadOpts) => Client) {
    this.client = makeClient(this.reads.onread);
    const isNew = (): void => void (this.#answers = 0);
    this.client.on("connect", isNew).on("disconnect", isNew);
  }

  /**
   * An end that comes now may be one that the engine decided on before it read the request: it had answered over this
   * connection, and nothing of this answer came.
   */
  get mayBeStale(): boolean {
    return this.#answers > 0 && !this.reads.came;
  }

  /** An answer is whole. */
  answered(): void {
    this.#answers++;
  }

  /** The last request is over; this one takes its place. */
  send({ path, headers, body }: ConnectionRequest, handler: Dispatcher.DispatchHandler): void {
    this.reads.begin();
    this.client.dispatch({ path, method: "POST", headers, body }, handler);
  }
}
