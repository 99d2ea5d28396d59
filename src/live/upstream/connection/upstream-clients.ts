import { type buildConnector, Client } from "undici";

import type { GatewayLimits } from "../../http/limits.ts";
import { UpstreamConnection } from "./upstream-connection.ts";

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
 * ours. `connect` makes the connections where they are to be made in another way. HTTP/2 is off: many streams would share
 * one connection's window.
 */
export class UpstreamClients {
  readonly #url: string;
  readonly #options: Client.Options;
  readonly #connect: buildConnector.connector | undefined;
  readonly #all: UpstreamConnection[] = [];
  /** Those that became free first are first. */
  readonly #free: UpstreamConnection[] = [];

  constructor(url: string, limits: GatewayLimits, connect?: buildConnector.connector) {
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
    // A connection that is made in another way is not read here.
    const isHttp = this.#url.startsWith("http:");
    const connection = new UpstreamConnection((onread) => {
      const connect = this.#connect ?? (isHttp ? { onread } : {});
      return new Client(this.#url, { ...this.#options, connect });
    });
    this.#all.push(connection);
    return connection;
  }
}

const REQUESTS_ALLOWED = 2;
