import {
  constants,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo, Server, Socket } from "node:net";
import { createServer as createTlsServer, type SecureContextOptions } from "node:tls";
import { type CallLimits, type CallReceiver, GrpcCall, type GrpcMethod, ignore, NO_RECEIVER } from "./call.ts";
import { ClientConnection, type ConnectionRules } from "./connection.ts";
import { GRPC_STATUS } from "./message-frames.ts";
import { TlsConnection } from "./tls-connection.ts";

/** A certificate with its key, and who is notified when others take their place. */
export interface PickerTls {
  readonly context: SecureContextOptions;
  readonly listen: (changed: (context: SecureContextOptions) => void) => void;
}

export interface GrpcServerOptions extends CallLimits, ConnectionRules {
  /** By their paths. */
  readonly methods: ReadonlyMap<string, GrpcMethod>;
  /** Calls at once; HTTP/2 refuses those of one connection beyond that, a status those of several. */
  readonly callsMax: number;
  /** Connections; more are closed at once. */
  readonly connectionsMax: number;
  /** Counts those. */
  readonly connectionDropped: () => void;
  /** Counts those that came of age. */
  readonly connectionRenewed: () => void;
  /** Undefined: plain text. A new certificate is for new connections. */
  readonly tls: PickerTls | undefined;
}

/**
 * Resets that a connection may send at once, and in each second after that. Proxies end every stream by resetting it, as Envoy does;
 * Node's HTTP/2 closes the connection of a client that resets more than 33 streams a second, with all that are open on it, unless it
 * is given another limit. Streams that are open are limited all the same.
 */
const RESETS = 1_000_000;
/** As a drain waits for one. */
const HANDSHAKE_MILLIS_MAX = 10_000;
const GRPC = /^application\/grpc(?:[+;]|$)/;

/** Serves methods of gRPC on HTTP/2. */
export class GrpcServer {
  readonly #options: GrpcServerOptions;
  /** Takes the connections. */
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #connections = new Set<ClientConnection>();
  /** Whose session is made next. */
  #arriving: Socket | undefined;
  #calls = 0;

  constructor(options: GrpcServerOptions) {
    this.#options = options;
    const { callsMax: maxConcurrentStreams, tls } = options;
    const http2 = createServer({
      settings: { maxConcurrentStreams },
      streamResetBurst: RESETS,
      streamResetRate: RESETS,
      // Streams and bodies have limits of their own, whose refusals have reasons.
      maxSessionMemory: Number.MAX_SAFE_INTEGER,
    });
    if (tls === undefined) this.#server = http2;
    else {
      const server = createTlsServer({
        ...tls.context,
        ALPNProtocols: ["h2"],
        handshakeTimeout: HANDSHAKE_MILLIS_MAX,
      });
      server.on("secureConnection", (socket) => http2.emit("connection", new TlsConnection(socket)));
      tls.listen((changed) => server.setSecureContext(changed));
      this.#server = server;
    }
    const arrives = tls === undefined ? "connection" : "secureConnection";
    this.#server.prependListener(arrives, (socket: Socket) => (this.#arriving = socket));
    this.#server.maxConnections = options.connectionsMax;
    this.#server.on("drop", options.connectionDropped);
    this.#server.on("connection", (socket: Socket) => this.#connected(socket));
    http2.on("session", (session: ServerHttp2Session) => this.#opened(session));
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
  async notify(): Promise<void> {
    await Promise.all([...this.#connections].map((one) => one.inform()));
  }

  /** Takes no new streams and waits for those that are open; cuts what is left after `graceMillis`. */
  async stop(graceMillis: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const one of this.#connections) one.close();
    const timer = setTimeout(() => {
      for (const one of this.#connections) one.destroy();
      // Those in a handshake, and those whose clients do not read.
      for (const socket of this.#sockets) socket.destroy();
    }, graceMillis);
    await closed;
    clearTimeout(timer);
  }

  #connected(socket: Socket): void {
    this.#sockets.add(socket);
    // Who reads it learns of that by its close; nobody may be left who does.
    socket.on("error", ignore);
    socket.once("close", () => this.#sockets.delete(socket));
  }

  #opened(session: ServerHttp2Session): void {
    const connection = new ClientConnection(session, this.#arriving!, this.#options, this.#options);
    this.#connections.add(connection);
    session.once("close", () => this.#connections.delete(connection));
    if (!this.#server.listening) connection.close();
  }

  #called(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    // What a stream fails by closes it too, which its call is notified of.
    stream.on("error", ignore);
    // It was reset within the read that brought it.
    if (stream.closed || stream.destroyed) return;
    const isGrpc = GRPC.test(headers["content-type"] ?? "");
    if (!isGrpc || headers[":method"] !== "POST") {
      stream.respond({ ":status": isGrpc ? 405 : 415 }, { endStream: true });
      stream.setTimeout(this.#options.writeStallMillisMax, () => stream.close(constants.NGHTTP2_CANCEL));
      stream.resume();
      return;
    }
    this.#calls++;
    stream.once("close", () => this.#calls--);
    new GrpcCall(stream, this.#options).start(this.#methodOf(headers[":path"] ?? ""), headers);
  }

  #methodOf(path: string): GrpcMethod {
    const { methods, callsMax, failed } = this.#options;
    if (this.#calls <= callsMax) return methods.get(path) ?? unknownMethod;
    failed("calls");
    return tooManyCalls;
  }
}

function unknownMethod(call: GrpcCall): CallReceiver {
  call.end(GRPC_STATUS.unimplemented, "no such method here");
  return NO_RECEIVER;
}

function tooManyCalls(call: GrpcCall): CallReceiver {
  call.end(GRPC_STATUS.unavailable, "as many calls at once as there may be");
  return NO_RECEIVER;
}
