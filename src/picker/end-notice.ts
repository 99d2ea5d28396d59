import type { Http2Server, ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import type { Server } from "@grpc/grpc-js";

/** A GOAWAY frame without an error: the connection will end, and no stream that a client has opened is refused. */
const NOTICE = Buffer.from([0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
const READ_MILLIS_MAX = 1_000;

/**
 * Informs proxies that their connections will end before they do (RFC 9113, 6.8). As the library shuts down, streams that cross its
 * own notice are refused, and a proxy that asks for an endpoint answers its client with 500 then; and Node's HTTP/2 takes no
 * stream once it has sent a GOAWAY. So the frame is written beside it, between two of its writes, which end with whole frames.
 */
export class EndNotice {
  readonly #sessions: ReadonlyMap<ServerHttp2Session, unknown>;
  readonly #uninformed = new Set<Socket>();

  /** Of a server that listens already. */
  constructor(server: Server) {
    const servers: unknown = Reflect.get(server, "http2Servers");
    const sessions: unknown = Reflect.get(server, "sessions");
    if (!(servers instanceof Map && sessions instanceof Map))
      throw new Error("this version of @grpc/grpc-js keeps its HTTP/2 servers elsewhere");
    this.#sessions = sessions as ReadonlyMap<ServerHttp2Session, unknown>;
    for (const one of (servers as ReadonlyMap<Http2Server, unknown>).keys()) {
      one.on("setSecureContext" in one ? "secureConnection" : "connection", (socket: Socket) => {
        this.#uninformed.add(socket);
        socket.once("close", () => this.#uninformed.delete(socket));
      });
    }
  }

  /** Resolves once every proxy has read it: what was opened until then has arrived, and is served. */
  async send(): Promise<void> {
    for (const socket of this.#uninformed) socket.write(NOTICE);
    this.#uninformed.clear();
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, READ_MILLIS_MAX);
    await Promise.race([Promise.all([...this.#sessions.keys()].map(answered)), late.promise]);
    clearTimeout(timer);
  }
}

/** A ping's answer comes behind all that was sent before the ping was read. */
function answered(session: ServerHttp2Session): Promise<void> {
  return new Promise((resolve) => {
    if (session.closed || session.destroyed) return resolve();
    session.once("close", resolve);
    if (!session.ping(() => resolve())) resolve();
  });
}
