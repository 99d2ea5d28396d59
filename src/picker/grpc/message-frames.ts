/** Before each message: whether it is compressed, and its length. */
export const HEAD_BYTES = 5;
/** As much as most messages that come in pieces have. */
const ROOM_BYTES = 32 * 1024;

/** Why a call fails, as gRPC numbers it. */
export const GRPC_STATUS = {
  ok: 0,
  deadlineExceeded: 4,
  notFound: 5,
  resourceExhausted: 8,
  unimplemented: 12,
  internal: 13,
} as const;

export class GrpcError extends Error {
  readonly status: number;

  constructor(status: number, text: string) {
    super(text);
    this.status = status;
  }
}

/** Puts gRPC's messages together from the pieces in which they come. */
export class MessageFrames {
  readonly #bytesMax: number;
  readonly #head = Buffer.alloc(HEAD_BYTES);
  #headBytes = 0;
  /** Of the message that is coming; undefined within a head. */
  #length: number | undefined;
  #filled = 0;
  #message: Buffer = EMPTY;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Whether all that came were whole messages. */
  get isBetween(): boolean {
    return this.#length === undefined && this.#headBytes === 0;
  }

  /** Gives each message that ends in this piece; it is a part of the piece where it began in it too. */
  push(piece: Buffer, take: (message: Buffer) => void): void {
    let at = 0;
    while (at < piece.length || this.#length === 0) {
      if (this.#length === undefined) {
        at = this.#pushHead(piece, at);
        if (this.#length === undefined) return;
      }
      const wanted = this.#length - this.#filled;
      const here = Math.min(wanted, piece.length - at);
      if (here === this.#length) this.#message = piece.subarray(at, at + here);
      else this.#append(piece, at, here, this.#length);
      at += here;
      if (here < wanted) return;
      const message = this.#message;
      this.#message = EMPTY;
      this.#length = undefined;
      this.#filled = 0;
      take(message);
    }
  }

  #pushHead(piece: Buffer, from: number): number {
    const end = Math.min(piece.length, from + HEAD_BYTES - this.#headBytes);
    this.#headBytes += piece.copy(this.#head, this.#headBytes, from, end);
    if (this.#headBytes < HEAD_BYTES) return end;
    this.#headBytes = 0;
    if (this.#head[0] !== 0)
      throw new GrpcError(GRPC_STATUS.unimplemented, "no compression of messages is in use here");
    const length = this.#head.readUInt32BE(1);
    if (length > this.#bytesMax)
      throw new GrpcError(GRPC_STATUS.resourceExhausted, `a message of ${length} bytes; ${this.#bytesMax} at most`);
    this.#length = length;
    return end;
  }

  /** What comes is kept, not what is announced. */
  #append(piece: Buffer, from: number, count: number, length: number): void {
    const needed = this.#filled + count;
    if (needed > this.#message.length) {
      const larger = Buffer.allocUnsafe(Math.min(length, Math.max(ROOM_BYTES, 2 * needed)));
      this.#message.copy(larger, 0, 0, this.#filled);
      this.#message = larger;
    }
    piece.copy(this.#message, this.#filled, from, from + count);
    this.#filled = needed;
  }
}

const EMPTY = Buffer.alloc(0);
