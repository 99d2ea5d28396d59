import { type buildConnector, Client } from "undici";

import { MICROS_PER_MILLI } from "#core/base/units.ts";
import { nowMicros } from "../../base/clock.ts";
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
  readonly #plainBytesMax: number;
  readonly #keepAliveMillis: number;
  readonly #all: UpstreamConnection[] = [];
  /** Those that became free first are first. */
  readonly #free: UpstreamConnection[] = [];
  /** Until some that are held were idle for long enough. */
  #idleTimer: NodeJS.Timeout | undefined;

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
    this.#keepAliveMillis = limits.upstreamKeepAliveMillis;
    // A connection that is made in another way is not read here.
    const isOurs = connect === undefined && url.startsWith("http:");
    this.#plainBytesMax = isOurs ? limits.plainAnswerBytesMax : 0;
  }

  /** A connection without a request. The caller gives it back when its request is over. */
  take(): UpstreamConnection {
    return this.#free.pop() ?? this.#make();
  }

  giveBack(connection: UpstreamConnection): void {
    this.#free.push(connection);
    if (!connection.isHeld) return;
    connection.idleSince = nowMicros();
    this.#idleTimer ??= setTimeout(() => this.#endIdle(), this.#keepAliveMillis).unref();
  }

  /** Resolves when the requests in flight are over. */
  async close(): Promise<void> {
    clearTimeout(this.#idleTimer);
    for (const connection of this.#all) connection.close();
    await Promise.all(this.#all.map(({ client }) => client.close()));
  }

  async destroy(): Promise<void> {
    clearTimeout(this.#idleTimer);
    await Promise.all(this.#all.map(({ client }) => client.destroy()));
  }

  /** Ends those that are held and were idle for as long as one may be, and looks again when the next one was. */
  #endIdle(): void {
    this.#idleTimer = undefined;
    const before = nowMicros() - this.#keepAliveMillis * MICROS_PER_MILLI;
    for (const connection of this.#free) {
      if (!connection.isHeld) continue;
      if (connection.idleSince <= before) {
        connection.drop();
        continue;
      }
      const millis = Math.ceil((connection.idleSince - before) / MICROS_PER_MILLI);
      this.#idleTimer = setTimeout(() => this.#endIdle(), millis).unref();
      return;
    }
  }

  #make(): UpstreamConnection {
    const url = new URL(this.#url);
    const plain = { host: url.host, bytesMax: this.#plainBytesMax };
    const isHttp = url.protocol === "http:";
    const connection: UpstreamConnection = new UpstreamConnection((onread) => {
      const connect = this.#connect ?? (isHttp ? { onread } : {});
      return new Client(this.#url, { ...this.#options, connect });
    }, plain);
    this.#all.push(connection);
    return connection;
  }
}

const REQUESTS_ALLOWED = 2;
