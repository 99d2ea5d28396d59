import { type IncomingMessage, STATUS_CODES, type Server, type ServerResponse, maxHeaderSize } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";

import { type Refusal, ERRORS, errorBody, errorHeaders, refusal } from "./errors.ts";

export interface HttpFaultOptions {
  /** Serves one request. */
  readonly serve: (incoming: IncomingMessage, outgoing: ServerResponse) => void;
  /** A body of more bytes than this is refused. */
  readonly bodyBytesMax: () => number;
  /** An answer is owed or under way on this socket. */
  readonly answering: (socket: Duplex) => boolean;
  /** Ends a connection behind the answer to its last whole request, where that is still owed; else false. */
  readonly endBehind: (socket: Socket) => boolean;
  /** Answers carry x-gnomon-* headers. */
  readonly sendsOwnHeaders: boolean;
  /** Is notified of every one. */
  readonly malformed: () => void;
}

/** What Node would answer by itself, without a body, or not at all: bytes that are no request, expectations, tunnels. */
export function answerHttpFaults(server: Server, options: HttpFaultOptions): void {
  const { serve, bodyBytesMax, answering, endBehind, malformed } = options;
  const ending = new WeakSet<Duplex>();
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (ending.has(socket) && error.code !== "ECONNRESET") return;
    if (!hasLeft(error)) malformed();
    if (error.code === "ECONNRESET" || !socket.writable) socket.destroy();
    // Bytes after a whole request: an error here would be taken for its answer, or land in the middle of it.
    else if (socket instanceof Socket && endBehind(socket)) ending.add(socket);
    else if (answering(socket)) socket.destroy();
    else socket.end(rawAnswer(refusalOfBytes(error.code), options.sendsOwnHeaders));
  });
  server.on("connect", (_incoming, socket: Duplex) => {
    malformed();
    socket.on("error", () => {});
    socket.end(rawAnswer(refusal("wrong-method", "This gateway opens no tunnels."), options.sendsOwnHeaders));
  });
  // A body that will be refused is better not sent.
  server.on("checkContinue", (incoming, outgoing) => {
    if (!(Number(incoming.headers["content-length"]) > bodyBytesMax())) outgoing.writeContinue();
    serve(incoming, outgoing);
  });
  // Expectations other than that may be ignored (RFC 9110 10.1.1), as vLLM's server does.
  server.on("checkExpectation", serve);
}

/** Its client broke its connection, or ended it in the middle of a request; what it sent was right so far. */
function hasLeft({ code, syscall }: NodeJS.ErrnoException): boolean {
  return syscall !== undefined || code === "HPE_INVALID_EOF_STATE";
}

/** What is wrong with bytes that Node could not take for a request, or that came too slowly. */
function refusalOfBytes(code: string | undefined): Refusal {
  switch (code) {
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return refusal("slow-request", "The request did not arrive in time.");
    case "HPE_HEADER_OVERFLOW":
      return refusal("headers-too-large", `The request's head is larger than ${maxHeaderSize} bytes.`);
    case undefined:
    default:
      return refusal("bad-request", "This is not a well-formed HTTP/1.1 request.");
  }
}

/** An answer on a socket that has no response. */
export function rawAnswer(refused: Refusal, sendsOwnHeaders: boolean): string {
  const body = errorBody(refused);
  const { status } = ERRORS[refused.reason];
  const headers = errorHeaders(refused, Buffer.byteLength(body), sendsOwnHeaders);
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\nconnection: close\r\n`;
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return `${head}\r\n${body}`;
}
