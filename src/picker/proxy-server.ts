import { Server, type ServerOptions } from "@grpc/grpc-js";

/** Resets that a connection may send at once, and in each second after that. */
const RESETS = 1_000_000;

/**
 * A server for proxies, which end every stream by resetting it, as Envoy does. Node's HTTP/2 closes the connection of a
 * client that resets more than 33 streams a second, with all that are open on it, unless it is given another limit, and
 * the gRPC library has no option for that. Streams that are open are limited all the same.
 */
export function proxyServer(options: ServerOptions): Server {
  const server = new Server(options);
  const http2Options: unknown = Reflect.get(server, "commonServerOptions");
  if (typeof http2Options !== "object" || http2Options === null)
    throw new Error("this version of @grpc/grpc-js keeps the options of its HTTP/2 servers elsewhere");
  Object.assign(http2Options, { streamResetBurst: RESETS, streamResetRate: RESETS });
  return server;
}
