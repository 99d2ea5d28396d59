import { timingSafeEqual } from "node:crypto";
import { OWN_PREFIX } from "../request/headers.ts";
import { type IncomingMessage, type Server, type ServerResponse, Agent, request } from "node:http";

/** Where the first thread listens for what its workers pass on, and what shows that they do. */
export interface InnerPlace {
  /** Of a socket of this machine. */
  readonly path: string;
  readonly token: string;
}

const TOKEN = `${OWN_PREFIX}inner-token`;
const PEER = `${OWN_PREFIX}inner-peer`;
/** Of this connection alone; Node sets its own. */
const DROPPED: ReadonlySet<string> = new Set([TOKEN, PEER, "connection", "keep-alive", "upgrade", "expect", "te"]);
const CONNECTIONS_MAX = 64;

/**
 * Passes requests for pages, models and administration from a worker to the first thread, and the answers back as they
 * come.
 */
export function passOn({ path, token }: InnerPlace): (incoming: IncomingMessage, outgoing: ServerResponse) => void {
  const agent = new Agent({ keepAlive: false, maxSockets: CONNECTIONS_MAX });
  return (incoming, outgoing) => {
    const headers = passedHeaders(incoming.rawHeaders);
    headers.push(TOKEN, token, PEER, incoming.socket.remoteAddress ?? "");
    const { method = "GET", url = "/" } = incoming;
    const inner = request({ socketPath: path, agent, method, path: url, headers });
    inner.on("response", (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, passedHeaders(answer.rawHeaders));
      answer.pipe(outgoing);
      answer.on("error", () => outgoing.destroy());
    });
    inner.on("error", () => {
      if (outgoing.headersSent) outgoing.destroy();
      else outgoing.writeHead(502, { "content-length": 0 }).end();
    });
    outgoing.on("close", () => inner.destroy());
    incoming.pipe(inner);
  };
}

function passedHeaders(raw: readonly string[]): string[] {
  const passed: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    if (!DROPPED.has(raw[i]!.toLowerCase())) passed.push(raw[i]!, raw[i + 1]!);
  }
  return passed;
}

/** Before all else, requests of workers get the address of their client; whoever else found the socket is cut off. */
export function expectWorkers(server: Server, token: string): void {
  const expected = Buffer.from(token);
  server.prependListener("request", ({ headers, socket }: IncomingMessage) => {
    const given = Buffer.from(String(headers[TOKEN] ?? ""));
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return socket.destroy();
    const remoteAddress = String(headers[PEER] ?? "");
    delete headers[TOKEN];
    delete headers[PEER];
    // A connection carries one request after the other.
    Object.defineProperty(socket, "remoteAddress", { configurable: true, value: remoteAddress });
    return undefined;
  });
}
