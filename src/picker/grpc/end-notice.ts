import type { ServerHttp2Session } from "node:http2";
import type { Server, Socket } from "node:net";

/** A GOAWAY frame without an error: the connection will end, and no stream that a client has opened is refused. */
const NOTICE = Buffer.from([0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
const READ_MILLIS_MAX = 1_000;

/**
 * Informs proxies that their connections will end before they do (RFC 9113, 6.8). Node's HTTP/2 takes no stream once it has sent a
 * GOAWAY itself: those that cross it are refused, and a proxy that asks for an endpoint answers its client with 500 then. So the
 * frame is written beside it, between two of its writes, which end with whole frames.
 */
export class EndNotice {
  readonly #sessions: ReadonlySet<ServerHttp2Session>;
  readonly #uninformed = new Set<Socket>();

  /** `event` of the server brings its sockets. */
  constructor(server: Server, event: string, sessions: ReadonlySet<ServerHttp2Session>) {
    this.#sessions = sessions;
    server.on(event, (socket: Socket) => {
      this.#uninformed.add(socket);
      socket.once("close", () => this.#uninformed.delete(socket));
    });
  }

  /** Resolves once every proxy has read it: what was opened until then has arrived, and is served. */
  async send(): Promise<void> {
    for (const socket of this.#uninformed) if (socket.writable) socket.write(NOTICE);
    this.#uninformed.clear();
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, READ_MILLIS_MAX);
    await Promise.race([Promise.all([...this.#sessions].map(answered)), late.promise]);
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
