import type { OnReadOpts, Socket } from "node:net";

const READ_BYTES = 65_536;
/** Small, since one piece that is kept keeps its whole slab. */
const SLAB_BYTES = 8_192;
const POOLED_BYTES_MAX = 2_048;

/** Sockets are read one after another, and each read is copied out of it before the next. */
const shared = Buffer.allocUnsafeSlow(READ_BYTES);
let slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
let used = 0;

/**
 * Option of a connection: what arrives is read into one buffer of ours and goes on as a slice of a slab, where Node would
 * allocate 64 KiB for each read and then as much again as came. A stream's event is some 300 bytes. The socket stays the
 * stream that undici knows: how it is paused, ended and destroyed is Node's.
 */
export const POOLED_READS: OnReadOpts = {
  buffer: shared,
  callback(this: Socket, bytes: number): boolean {
    return this.push(taken(bytes));
  },
};

function taken(bytes: number): Buffer {
  if (bytes > POOLED_BYTES_MAX) {
    const own = Buffer.allocUnsafeSlow(bytes);
    shared.copy(own, 0, 0, bytes);
    return own;
  }
  if (used + bytes > SLAB_BYTES) {
    slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
    used = 0;
  }
  const piece = slab.subarray(used, used + bytes);
  used += bytes;
  shared.copy(piece, 0, 0, bytes);
  return piece;
}
