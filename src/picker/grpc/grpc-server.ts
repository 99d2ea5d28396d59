import {
  constants,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo, Server } from "node:net";
import { createServer as createTlsServer, type SecureContextOptions } from "node:tls";
import { GrpcCall, type GrpcMethod } from "./call.ts";
import { EndNotice } from "./end-notice.ts";
import { GRPC_STATUS } from "./message-frames.ts";
import { TlsConnection } from "./tls-connection.ts";

/** A certificate with its key, and who is notified when others take their place. */
export interface PickerTls {
  readonly context: SecureContextOptions;
  readonly listen: (changed: (context: SecureContextOptions) => void) => void;
}

export interface GrpcServerOptions {
  /** By their paths. */
  readonly methods: ReadonlyMap<string, GrpcMethod>;
  readonly messageBytesMax: number;
  readonly streamsOfConnectionMax: number;
  /** Undefined: plain text. A new certificate is for new connections. */
  readonly tls: PickerTls | undefined;
}

/**
 * Resets that a connection may send at once, and in each second after that. Proxies end every stream by resetting it, as Envoy does;
 * Node's HTTP/2 closes the connection of a client that resets more than 33 streams a second, with all that are open on it, unless it
 * is given another limit. Streams that are open are limited all the same.
 */
const RESETS = 1_000_000;

/** Serves methods of gRPC on HTTP/2. */
export class GrpcServer {
  readonly #options: GrpcServerOptions;
  /** Takes the connections. */
  readonly #server: Server;
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #notice: EndNotice;

  constructor(options: GrpcServerOptions) {
    this.#options = options;
    const { streamsOfConnectionMax: maxConcurrentStreams, tls } = options;
    const http2 = createServer({
      settings: { maxConcurrentStreams },
      streamResetBurst: RESETS,
      streamResetRate: RESETS,
      // Streams and bodies have limits of their own, whose refusals have reasons.
      maxSessionMemory: Number.MAX_SAFE_INTEGER,
    });
    if (tls === undefined) this.#server = http2;
    else {
      const server = createTlsServer({ ...tls.context, ALPNProtocols: ["h2"] });
      server.on("secureConnection", (socket) => http2.emit("connection", new TlsConnection(socket)));
      tls.listen((changed) => server.setSecureContext(changed));
      this.#server = server;
    }
    this.#notice = new EndNotice(this.#server, tls === undefined ? "connection" : "secureConnection", this.#sessions);
    http2.on("session", (session: ServerHttp2Session) => {
      this.#sessions.add(session);
      session.once("close", () => this.#sessions.delete(session));
    });
    http2.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => this.#called(stream, headers));
  }

  /** Resolves with the port; rejects with the system's error where the address cannot be had. */
  listen(host: string, port: number): Promise<number> {
    const server = this.#server;
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, host, () => {
        server.off("error", reject);
        resolve((server.address() as AddressInfo).port);
      });
    });
  }

  /** Informs clients that their connections will end; resolves once they have read it. */
  notify(): Promise<void> {
    return this.#notice.send();
  }

  /** Takes no new streams and waits for those that are open; cuts what is left after `graceMillis`. */
  async stop(graceMillis: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const session of this.#sessions) session.close();
    const timer = setTimeout(() => {
      for (const session of this.#sessions) session.destroy(undefined, constants.NGHTTP2_CANCEL);
    }, graceMillis);
    await closed;
    clearTimeout(timer);
  }

  #called(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    // What a stream fails by closes it too, which its call is notified of.
    stream.on("error", () => {});
    if (headers["content-type"]?.startsWith("application/grpc") !== true) {
      stream.respond({ ":status": 415 }, { endStream: true });
      return;
    }
    const { methods, messageBytesMax } = this.#options;
    new GrpcCall(stream, methods.get(headers[":path"] ?? "") ?? unknownMethod, messageBytesMax).start(headers);
  }
}

const NO_RECEIVER = { message: () => {}, clientEnded: () => {}, closed: () => {} };

function unknownMethod(call: GrpcCall) {
  call.end(GRPC_STATUS.unimplemented, "no such method here");
  return NO_RECEIVER;
}
