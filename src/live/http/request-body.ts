import { IncomingMessage } from "node:http";
import { type Refusal, refusal } from "./errors.ts";
import { giveBack } from "../base/give-back.ts";
import { LONG_READ_BYTES, LONG_READS } from "../base/long-reads.ts";
import { type Asker, AskerLeft, loopTurn } from "../base/loop-turn.ts";
import type { Fields } from "../base/fields.ts";

export interface BodyReader {
  /** As the client declared it; "" where it did not. */
  readonly declaredLength: string;
  readonly bytesMax: number;
  /** Asked before so many bytes more are kept; false where there is no room for them. */
  hold(bytes: number): boolean;
  done(body: Buffer | Refusal): void;
  /** Whose body it is. */
  readonly asker: Asker;
}

/**
 * Reads a request body once, into one buffer, and hands it on, or a refusal when it is longer than `bytesMax` (by its
 * declared length before any byte is read, else when it has grown so far) or there is no room for it. Hands nothing on
 * when the client leaves.
 */
export function readBody(incoming: IncomingMessage, reader: BodyReader): void {
  if (Number(reader.declaredLength) > reader.bytesMax) return reader.done(tooLarge(reader.bytesMax));
  const body = new CollectedBody(reader, incoming);
  if (incoming instanceof GatewayMessage && incoming.takeBody(body)) return;
  incoming.on("data", (chunk: Buffer) => {
    if (body.piece(chunk)) return;
    incoming.removeAllListeners("data");
    incoming.pause();
  });
  incoming.on("end", () => body.whole());
}

class CollectedBody implements BodyTaker {
  readonly #reader: BodyReader;
  readonly #incoming: IncomingMessage;
  #pieces = 0;
  #first: Buffer | undefined = undefined;
  #chunks: Buffer[] | undefined = undefined;
  /** Small pieces at the end of the list that were not joined yet, and their bytes. */
  #loose = 0;
  #looseBytes = 0;
  /** The connection is not read until it has its turn. */
  #waits = false;
  #bytes = 0;
  #refused = false;

  constructor(reader: BodyReader, incoming: IncomingMessage) {
    this.#reader = reader;
    this.#incoming = incoming;
  }

  /** What comes once the body is refused is passed over. */
  piece(chunk: Buffer): boolean {
    if (chunk.length >= LONG_READ_BYTES) LONG_READS.came(this.#incoming.socket);
    if (this.#refused) return false;
    this.#bytes += chunk.length;
    if (this.#bytes > this.#reader.bytesMax) return this.#refuse(tooLarge(this.#reader.bytesMax));
    if (chunk.length < SMALL_PIECE_BYTES) SMALL_PIECES.came();
    const refused = this.#inPieces();
    if (refused !== undefined) return this.#refuse(refused);
    if (!this.#reader.hold(chunk.length)) return this.#refuse(TOO_MANY_BYTES);
    if (this.#first === undefined) this.#first = chunk;
    else this.#add(chunk);
    return true;
  }

  whole(): void {
    if (this.#refused) return;
    const body = this.#chunks === undefined ? (this.#first ?? EMPTY) : Buffer.concat(this.#chunks, this.#bytes);
    this.#forget();
    this.#reader.done(body);
  }

  /** Its pieces are of no use any more. */
  readonly #forget = (): void => {
    this.#first = undefined;
    if (this.#chunks === undefined) return;
    this.#incoming.socket.removeListener("close", this.#forget);
    for (const chunk of this.#chunks) giveBack(chunk);
    this.#chunks = undefined;
  };

  /** A body in pieces of a byte would take a hundred times its length; large pieces stay as they are. */
  #add(chunk: Buffer): void {
    if (++this.#pieces % PIECES_AT_ONCE === 0) void this.#waitForTurn();
    const chunks = (this.#chunks ??= this.#ofMany());
    chunks.push(chunk);
    const isSmall = chunk.length < LARGE_PIECE_BYTES;
    this.#loose = isSmall ? this.#loose + 1 : 0;
    this.#looseBytes = isSmall ? this.#looseBytes + chunk.length : 0;
    if (this.#loose < LOOSE_PIECES_MAX && this.#looseBytes < LARGE_PIECE_BYTES) return;
    if (this.#loose > 1) chunks.push(Buffer.concat(chunks.splice(-this.#loose), this.#looseBytes));
    this.#loose = 0;
    this.#looseBytes = 0;
  }

  #ofMany(): Buffer[] {
    this.#incoming.socket.once("close", this.#forget);
    return [this.#first!];
  }

  /** What is read already still comes. Reading goes on in turn with all other long work of the process. */
  async #waitForTurn(): Promise<void> {
    if (this.#waits) return;
    this.#waits = true;
    const { socket } = this.#incoming;
    socket.pause();
    try {
      await loopTurn(this.#reader.asker);
      this.#waits = false;
      socket.resume();
    } catch (error) {
      // Nobody reads the rest.
      if (!(error instanceof AskerLeft)) throw error;
    }
  }

  /** Why no more of its pieces are taken. */
  #inPieces(): Refusal | undefined {
    if (this.#pieces >= PIECES_MAX) return TOO_MANY_PIECES;
    if (this.#pieces < SMALL_PIECES_AT_ONCE || this.#bytes >= this.#pieces * SMALL_PIECE_BYTES) return undefined;
    if (this.#pieces >= SMALL_PIECES_MAX) return TOO_MANY_PIECES;
    return SMALL_PIECES.isSpent ? TOO_MANY_AT_ONCE : undefined;
  }

  #refuse(refused: Refusal): false {
    this.#refused = true;
    this.#forget();
    this.#reader.done(refused);
    return false;
  }
}

/**
 * Small pieces of all bodies in one pass of the event loop. A hundred clients that each send 64 KiB in chunks of a byte at
 * the same moment would hold it for half a second: Node reads and parses them in one pass, and kept connections cannot be
 * held back before it is known what they bring.
 */
class SmallPieces {
  #count = 0;

  came(): void {
    if (this.#count++ === 0) setImmediate(() => (this.#count = 0));
  }

  /** As many came as one body may have. */
  get isSpent(): boolean {
    return this.#count > SMALL_PIECES_MAX;
  }
}

const SMALL_PIECES = new SmallPieces();
const LOOSE_PIECES_MAX = 256;
/** A read brings up to 64 KiB. */
const LARGE_PIECE_BYTES = 16_384;
/** A piece takes a microsecond, be it a byte. What one read brought is parsed at once, of many connections one after the other. */
const PIECES_AT_ONCE = 1_024;
/** A body of `bodyBytesMax` has 12,000 where packets are small; one in chunks of a byte costs 500 times what it should. */
const PIECES_MAX = 65_536;
/** Of pieces that are smaller than this on average a read brings 3,000 and more. */
const SMALL_PIECE_BYTES = 16;
export const SMALL_PIECES_MAX = 2_048;
/** Of one body where the pass at hand has had as many of others'. */
export const SMALL_PIECES_AT_ONCE = 8;
const TOO_MANY_PIECES = refusal(
  "bad-request",
  `The request body comes in more than ${PIECES_MAX} pieces, or in more than ${SMALL_PIECES_MAX} of less than ${SMALL_PIECE_BYTES} bytes on average; write it in larger ones.`,
);
const TOO_MANY_AT_ONCE = refusal(
  "saturated",
  `Request bodies come in too many pieces of less than ${SMALL_PIECE_BYTES} bytes at once; write it in larger ones, or try again later.`,
);
const TOO_MANY_BYTES = refusal(
  "saturated",
  "The gateway's limit of request bytes held at once is reached; try again later.",
);
const EMPTY = Buffer.alloc(0);

function tooLarge(bytesMax: number): Refusal {
  return refusal(
    "too-large",
    `The request body is larger than ${bytesMax} bytes (this gateway's limits.bodyBytesMax).`,
  );
}

/**
 * The same JSON object with more fields at its end, where a reader takes them over earlier ones of the same names.
 * `json` must be an object, as JSON.parse found; `fields` has at least one.
 */
export function withFields(json: Buffer, fields: Fields): Buffer {
  let end = json.length - 1;
  while (json[end] !== 0x7d) end--;
  let before = end - 1;
  while (json[before]! <= 0x20) before--;
  const comma = json[before] === 0x7b ? "" : ",";
  const more = Buffer.from(comma + JSON.stringify(fields).slice(1, -1));
  return Buffer.concat([json.subarray(0, end), more, json.subarray(end)]);
}

/** Takes a request's body as it is parsed. */
interface BodyTaker {
  /** False where the parser is to stop reading. */
  piece(chunk: Buffer): boolean;
  /** The body is whole. */
  whole(): void;
}

/**
 * A request whose body can be had straight from the parser. Node's way through a stream costs three turns of the
 * microtask queue, its buffer and the events of a stream's life, and nobody reads such a body piece by piece.
 */
export class GatewayMessage extends IncomingMessage {
  #taker: BodyTaker | undefined = undefined;
  /** Some of the body is in the stream, or all of it went to the taker. */
  #begun = false;
  #whole = false;

  static {
    // The server asks this to know whether the parser is done with a request; an accessor there, a property in its types.
    Object.defineProperty(this.prototype, "readableEnded", {
      configurable: true,
      get(this: GatewayMessage): boolean {
        return this.#whole || Reflect.get(IncomingMessage.prototype, "readableEnded", this);
      },
    });
  }

  /** False where the body's first piece came before its taker, and went into the stream. */
  takeBody(taker: BodyTaker): boolean {
    if (this.#begun) return false;
    this.#taker = taker;
    return true;
  }

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    this.#begun = true;
    const taker = this.#taker;
    if (taker === undefined) return super.push(chunk, encoding);
    if (chunk !== null) return taker.piece(chunk);
    this.#whole = true;
    taker.whole();
    return true;
  }
}
