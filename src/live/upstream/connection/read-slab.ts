const READ_BYTES = 65_536;
/** Small, since one piece that is kept keeps its whole slab. */
const SLAB_BYTES = 8_192;
const POOLED_BYTES_MAX = 2_048;

let slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
let used = 0;

/**
 * Memory that connections to engines are read with: all into one buffer, since they are read one after another, and each
 * read is copied out of it before the next, into a slice of a slab. Node would allocate 64 KiB for each read and then as
 * much again as came; a stream's event is some 300 bytes.
 */
export const READ_SLAB = {
  /** What was read last. */
  read: Buffer.allocUnsafeSlow(READ_BYTES),

  /** Where the memory of `room` begins. */
  at: 0,

  /** Memory with room for so many bytes. */
  room(bytes: number): Buffer {
    if (bytes > POOLED_BYTES_MAX) {
      this.at = 0;
      return Buffer.allocUnsafeSlow(bytes);
    }
    if (used + bytes > SLAB_BYTES) {
      slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
      used = 0;
    }
    this.at = used;
    return slab;
  },

  /** The first bytes of the room that was asked for last are a piece; they never change. */
  piece(memory: Buffer, bytes: number): Buffer {
    if (memory === slab) used += bytes;
    return memory.subarray(this.at, this.at + bytes);
  },

  /** What was read up to a place, as a piece; of its beginning, what is before `from` is left out. */
  copied(to: number, from = 0): Buffer {
    const memory = this.room(to - from);
    this.read.copy(memory, this.at, from, to);
    return this.piece(memory, to - from);
  },
};
