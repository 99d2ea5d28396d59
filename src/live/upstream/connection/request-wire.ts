import type { Socket } from "node:net";

/** A request with a body that is there. */
export interface WireRequest {
  readonly path: string;
  /** Names and values in turn; nothing of the connection or of the body's length is among them. */
  readonly headers: readonly string[];
  readonly body: Buffer;
}

const ROOM_BYTES = 65_536;
/** Longer bodies are not copied. */
const COPIED_BYTES_MAX = 16_384;
/** What may neither be in a path nor in a header's value. */
const NOT_IN_PATH = /[^\x21-\xff]/;
const NOT_IN_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

let room = Buffer.allocUnsafeSlow(ROOM_BYTES);

/** The head of a POST to this host, byte for byte as undici writes it; undefined where undici would refuse to, or might. */
export function wireHead(host: string, { path, headers, body }: WireRequest): string | undefined {
  if (body.length === 0 || path[0] !== "/" || NOT_IN_PATH.test(path)) return undefined;
  let head = `POST ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`;
  for (let i = 0; i < headers.length; i += 2) {
    const value = headers[i + 1]!;
    if (NOT_IN_VALUE.test(value)) return undefined;
    head += `${headers[i]!}: ${value}\r\n`;
  }
  return `${head}content-length: ${body.length}\r\n\r\n`;
}

/**
 * Writes head and body in one call. Of a short request that is one piece of memory which all share, since the kernel has
 * nearly always taken it when the write returns; memory from which a socket still writes is left to it.
 */
export function writeRequest(socket: Socket, head: string, body: Buffer): void {
  const length = head.length + body.length;
  if (body.length > COPIED_BYTES_MAX || length > ROOM_BYTES || socket.writableLength > 0) {
    socket.cork();
    socket.write(head, "latin1");
    socket.write(body);
    socket.uncork();
    return;
  }
  room.write(head, 0, "latin1");
  body.copy(room, head.length);
  socket.write(room.subarray(0, length));
  if (socket.writableLength > 0) room = Buffer.allocUnsafeSlow(ROOM_BYTES);
}
