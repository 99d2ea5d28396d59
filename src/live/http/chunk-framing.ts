/**
 * Where an HTTP body in chunks (RFC 9112, 7.1) stands between two reads, which may tear it anywhere. Walks over plain
 * chunks alone: a size in hexadecimal, CRLF, so many bytes, CRLF. It stops where the last chunk begins, and at whatever
 * else it does not know, for a parser that does.
 */
export class ChunkFraming {
  /** Bytes of payload that the last walk met. */
  payload = 0;
  #phase: "size" | "size-feed" | "data" | "return" | "feed" = "size";
  /** Of the chunk at hand: its size while that is read, then what is still to come of it. */
  #left = 0;
  #digits = 0;

  /** Nothing of a chunk is under way. */
  get isBetween(): boolean {
    return this.#phase === "size" && this.#digits === 0;
  }

  /**
   * Walks over bytes[from..to), and copies the payload to `into`, from `intoAt` on. Returns `to`, or the place of the
   * byte at which it stopped; `torn` then goes before it.
   */
  walk(bytes: Buffer, from: number, to: number, into?: Buffer, intoAt = 0): number {
    this.payload = 0;
    let at = from;
    while (at < to) {
      if (this.#phase === "data") at = this.#data(bytes, at, to, into, intoAt);
      else if (this.#mark(bytes[at]!)) at++;
      else return at;
    }
    return to;
  }

  /**
   * What a parser needs that saw whole chunks alone and goes on where the walk stopped: the chunk's beginning where that
   * was walked over. Payload that is followed by anything but CRLF is past saving; for that, it is no beginning of a chunk.
   */
  get torn(): string {
    if (this.#phase === "size" && this.#digits === 0) return "";
    if (this.#phase === "return" || this.#phase === "feed") return NO_CHUNK;
    return this.#left.toString(16).padStart(this.#digits, "0") + (this.#phase === "size-feed" ? "\r" : "");
  }

  #data(bytes: Buffer, at: number, to: number, into: Buffer | undefined, intoAt: number): number {
    const here = Math.min(this.#left, to - at);
    if (into !== undefined) bytes.copy(into, intoAt + this.payload, at, at + here);
    this.payload += here;
    this.#left -= here;
    if (this.#left === 0) this.#phase = "return";
    return at + here;
  }

  /** Takes a byte that is no payload; false where it is not what plain chunks have there. */
  #mark(byte: number): boolean {
    switch (this.#phase) {
      case "size":
        return byte === CR ? this.#sized() : this.#digit(byte);
      case "size-feed":
        if (byte !== LF) return false;
        this.#phase = "data";
        return true;
      case "return":
        if (byte !== CR) return false;
        this.#phase = "feed";
        return true;
      default:
        if (byte !== LF) return false;
        this.#phase = "size";
        this.#digits = 0;
        return true;
    }
  }

  #sized(): boolean {
    if (this.#left === 0 || this.#digits === 0) return false;
    this.#phase = "size-feed";
    return true;
  }

  #digit(byte: number): boolean {
    const digit = byte <= 57 ? byte - 48 : (byte | 32) - 87;
    if (digit < 0 || digit > 15 || (byte > 57 && digit < 10) || this.#digits === DIGITS_MAX) return false;
    this.#left = this.#left * 16 + digit;
    this.#digits++;
    return true;
  }
}

const CR = 13;
const LF = 10;
const DIGITS_MAX = 8;
const NO_CHUNK = "\0";

/** A chunk of an HTTP body (RFC 9112, 7.1) that lies whole in a read. */
export class WholeChunk {
  /** Its payload, in bytes[start..end). */
  start = 0;
  end = 0;
  /** Behind it. */
  next = 0;

  /** Finds the one that begins at `from`; false where it is not whole before `to`, is the last one, or has an extension. */
  at(bytes: Buffer, from: number, to: number): boolean {
    let size = 0;
    let at = from;
    for (; at < to && at - from < DIGITS_MAX; at++) {
      const digit = digitOf(bytes[at]!);
      if (digit < 0) break;
      size = size * 16 + digit;
    }
    if (size === 0 || at + size + MARKS > to) return false;
    const start = at + 2;
    const end = start + size;
    if (bytes[at] !== CR || bytes[at + 1] !== LF || bytes[end] !== CR || bytes[end + 1] !== LF) return false;
    this.start = start;
    this.end = end;
    this.next = end + 2;
    return true;
  }
}

/** Value of a hexadecimal digit; -1 of any other byte. */
function digitOf(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const letter = byte | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
}

/** CRLF behind the size and behind the payload. */
const MARKS = 4;
