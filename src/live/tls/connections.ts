import type { SecureContextOptions } from "node:tls";
import type { OnReadOpts } from "node:net";

import { buildConnector } from "undici";

/** How engines are spoken to over TLS. */
export interface EngineTls extends SecureContextOptions {
  /** False takes any certificate. */
  readonly rejectUnauthorized?: boolean;
}

/**
 * Makes the connections to engines. What is put in place later holds for every connection that is opened then; those that
 * are open stay as they are, and end when they are idle.
 */
export class EngineConnections {
  #tls: EngineTls;
  #version = 0;

  constructor(tls: EngineTls = {}) {
    this.#tls = tls;
  }

  replace(tls: EngineTls): void {
    this.#tls = tls;
    this.#version++;
  }

  /**
   * For undici's `connect`. `serverNameOf` names what a host's certificate is held against, where that is not the host;
   * `onread` takes what is read.
   */
  connector(
    timeoutMillis: number,
    serverNameOf: (host: string) => string | undefined = () => undefined,
    onread?: OnReadOpts,
  ): buildConnector.connector {
    let version = -1;
    let connect: buildConnector.connector | undefined;
    return (options, callback) => {
      if (connect === undefined || version !== this.#version) {
        connect = buildConnector({ ...this.#tls, timeout: timeoutMillis, allowH2: false, ...(onread && { onread }) });
        version = this.#version;
      }
      const servername = options.protocol === "https:" ? serverNameOf(options.host ?? options.hostname) : undefined;
      connect(servername === undefined ? options : { ...options, servername }, callback);
    };
  }
}
