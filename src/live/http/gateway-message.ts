import { IncomingMessage } from "node:http";

/** Takes a request's body as it is parsed. */
export interface BodyTaker {
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
