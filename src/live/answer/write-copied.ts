import type { Writable } from "node:stream";

const ROOM_BYTES = 2_048;

let room = Buffer.allocUnsafeSlow(ROOM_BYTES);
/** Views of the room by their length: one for each length that came. */
let views: (Buffer | undefined)[] = [];

/**
 * Writes a copy of the first bytes, as most streamed events leave. The kernel has nearly always taken a write when it
 * returns, and its memory is free again: so all have the same 2 KB, which the processor has at hand, and no object is made
 * for them. Memory from which a socket still writes is left to it. False where the client does not keep up.
 */
export function writeCopied(socket: Writable, bytes: Buffer, length: number): boolean {
  // What has to wait behind other writes is not free when this returns.
  if (length > ROOM_BYTES || socket.writableLength > 0 || socket.writableCorked > 0)
    return socket.write(Buffer.from(bytes.subarray(0, length)));
  bytes.copy(room, 0, 0, length);
  const goesOn = socket.write((views[length] ??= room.subarray(0, length)));
  if (socket.writableLength > 0) {
    room = Buffer.allocUnsafeSlow(ROOM_BYTES);
    views = [];
  }
  return goesOn;
}
