import type { IncomingMessage, Server, ServerOptions, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { SecureContextOptions } from "node:tls";

/** TLS towards clients: what it is now, and what it becomes. */
export interface ServerTls {
  readonly context: SecureContextOptions;
  /** Clients must show a certificate of one of the context's roots. */
  readonly wantsClientCert: boolean;
  /** Called with every later context. */
  listen(changed: (context: SecureContextOptions) => void): void;
}

const HANDSHAKE_MILLIS_MAX = 10_000;

/** A server that speaks TLS; another certificate holds for the connections that come after it. */
export function secureServer(
  tls: ServerTls,
  options: ServerOptions,
  serve: (incoming: IncomingMessage, outgoing: ServerResponse) => void,
  failed: () => void,
): Server {
  const { context, wantsClientCert } = tls;
  const secure = { ...context, requestCert: wantsClientCert, rejectUnauthorized: wantsClientCert };
  const server = createServer({ ...options, ...secure, handshakeTimeout: HANDSHAKE_MILLIS_MAX }, serve);
  tls.listen((next) => server.setSecureContext(next));
  server.on("tlsClientError", (_error, socket) => {
    failed();
    socket.destroy();
  });
  return server;
}
