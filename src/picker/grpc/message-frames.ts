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
  unavailable: 14,
} as const;

export class GrpcError extends Error {
  readonly why: "compressed" | "message-too-large" | "no-room";
  readonly status: number;

  constructor(why: GrpcError["why"], status: number, text: string) {
    super(text);
    this.why = why;
    this.status = status;
  }
}

/** Where messages that come in pieces are held until they are whole. */
export interface MessageRoom {
  /** False: no room for so many bytes. */
  take(bytes: number): boolean;
  give(bytes: number): void;
}

const NO_LIMIT: MessageRoom = { take: () => true, give: () => {} };

/** Puts gRPC's messages together from the pieces in which they come. */
export class MessageFrames {
  readonly #bytesMax: number;
  readonly #room: MessageRoom;
  readonly #head = Buffer.alloc(HEAD_BYTES);
  #headBytes = 0;
  /** Of the message that is coming; undefined within a head. */
  #length: number | undefined;
  #filled = 0;
  #message: Buffer = EMPTY;
  /** Bytes that were taken of the room. */
  #taken = 0;
  #isDiscarded = false;

  constructor(bytesMax: number, room: MessageRoom = NO_LIMIT) {
    this.#bytesMax = bytesMax;
    this.#room = room;
  }

  /** Whether all that came were whole messages. */
  get isBetween(): boolean {
    return this.#length === undefined && this.#headBytes === 0;
  }

  /** Gives each message that ends in this piece; it is a part of the piece where it began in it too. */
  push(piece: Buffer, take: (message: Buffer) => void): void {
    let at = 0;
    while (!this.#isDiscarded && (at < piece.length || this.#length === 0)) {
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
      this.#giveBack();
      take(message);
    }
  }

  /** Nothing more is wanted. */
  discard(): void {
    this.#isDiscarded = true;
    this.#message = EMPTY;
    this.#giveBack();
  }

  #giveBack(): void {
    if (this.#taken === 0) return;
    this.#room.give(this.#taken);
    this.#taken = 0;
  }

  #pushHead(piece: Buffer, from: number): number {
    const end = Math.min(piece.length, from + HEAD_BYTES - this.#headBytes);
    this.#headBytes += piece.copy(this.#head, this.#headBytes, from, end);
    if (this.#headBytes < HEAD_BYTES) return end;
    this.#headBytes = 0;
    if (this.#head[0] !== 0)
      throw new GrpcError("compressed", GRPC_STATUS.unimplemented, "no compression of messages is in use here");
    const length = this.#head.readUInt32BE(1);
    if (length > this.#bytesMax) {
      const text = `a message of ${length} bytes; ${this.#bytesMax} at most`;
      throw new GrpcError("message-too-large", GRPC_STATUS.resourceExhausted, text);
    }
    this.#length = length;
    return end;
  }

  /** What comes is kept, not what is announced. */
  #append(piece: Buffer, from: number, count: number, length: number): void {
    const needed = this.#filled + count;
    if (needed > this.#message.length) {
      const bytes = Math.min(length, Math.max(ROOM_BYTES, 2 * needed));
      const more = bytes - this.#taken;
      if (!this.#room.take(more))
        throw new GrpcError("no-room", GRPC_STATUS.resourceExhausted, "no room for more messages that come in pieces");
      this.#taken += more;
      const larger = Buffer.allocUnsafe(bytes);
      this.#message.copy(larger, 0, 0, this.#filled);
      this.#message = larger;
    }
    piece.copy(this.#message, this.#filled, from, from + count);
    this.#filled = needed;
  }
}

const EMPTY = Buffer.alloc(0);
