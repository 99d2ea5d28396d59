const BYTES_AT_START = 65_536;
/** Shorter text is written character by character, which is quicker than a call that leaves JavaScript. */
const SHORT_TEXT = 64;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const LAST_ASCII = 0x7e;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;
const MINUS = 0x2d;
const ZERO = 0x30;
/** Whole numbers below have at most nine digits and are a machine's own. */
const NINE_DIGITS = 1_000_000_000;

/** JSON as bytes, one piece after another, in a buffer that grows and is used again: nothing is kept of what was written. */
export class JsonBytes {
  #bytes = Buffer.allocUnsafeSlow(BYTES_AT_START);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Forgets what was written from `length` on. */
  cut(length: number): void {
    this.#length = length;
  }

  /** A copy of all that was written; the next piece is the first again. */
  taken(): Buffer<ArrayBuffer> {
    const bytes = Buffer.allocUnsafeSlow(this.#length);
    this.#bytes.copy(bytes, 0, 0, this.#length);
    this.#length = 0;
    return bytes;
  }

  /** What was written, until anything else is. */
  view(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** A character of ASCII. */
  byte(code: number): void {
    if (this.#length === this.#bytes.length) this.#grow(1);
    this.#bytes[this.#length++] = code;
  }

  comma(): void {
    this.byte(COMMA);
  }

  bytes(piece: Uint8Array): void {
    const start = this.#reserved(piece.length);
    const bytes = this.#bytes;
    for (let i = 0; i < piece.length; i++) bytes[start + i] = piece[i]!;
  }

  /** Text as it is, which must be of ASCII alone. */
  ascii(text: string): void {
    const start = this.#reserved(text.length);
    const bytes = this.#bytes;
    if (text.length > SHORT_TEXT) bytes.write(text, start, "latin1");
    else for (let i = 0; i < text.length; i++) bytes[start + i] = text.charCodeAt(i);
  }

  /** JSON as it is. */
  json(text: string): void {
    // A character of a string is at most three bytes of UTF-8.
    const start = this.#reserved(3 * text.length);
    this.#length = start + this.#bytes.write(text, start, "utf8");
  }

  /** A string. */
  text(value: string): void {
    const start = this.#reserved(value.length + 2);
    const bytes = this.#bytes;
    bytes[start] = QUOTE;
    for (let i = 0; i < value.length; i++) {
      const code = value.charCodeAt(i);
      if (code < SPACE || code > LAST_ASCII || code === QUOTE || code === BACKSLASH) {
        this.#length = start;
        return this.json(JSON.stringify(value));
      }
      bytes[start + 1 + i] = code;
    }
    bytes[start + 1 + value.length] = QUOTE;
  }

  /** The shortest text that reads back as the same number, minus zero included. Throws a RangeError for what JSON lacks. */
  number(value: number): void {
    if (value === 0) return this.ascii(Object.is(value, -0) ? "-0" : "0");
    if (!Number.isSafeInteger(value)) {
      if (!Number.isFinite(value)) throw new RangeError(`${value} has no JSON form`);
      return this.ascii(String(value));
    }
    if (value < 0) this.byte(MINUS);
    const size = Math.abs(value);
    if (size < NINE_DIGITS) return this.#digits(size, digitsOf(size));
    const high = Math.floor(size / NINE_DIGITS);
    this.#digits(high, digitsOf(high));
    this.#digits(size - high * NINE_DIGITS, 9);
  }

  /** The next number of a list. */
  next(value: number): void {
    this.byte(COMMA);
    this.number(value);
  }

  /** Makes an object of what was written from `start` on: fields, each with a comma before it. */
  object(start: number): void {
    this.#enclose(start, OPEN_BRACE, CLOSE_BRACE);
  }

  /** The same of values of a list. */
  list(start: number): void {
    this.#enclose(start, OPEN_BRACKET, CLOSE_BRACKET);
  }

  #enclose(start: number, open: number, close: number): void {
    if (this.#length === start) this.byte(open);
    else this.#bytes[start] = open;
    this.byte(close);
  }

  /** Right-aligned in so many places. */
  #digits(value: number, places: number): void {
    const start = this.#reserved(places);
    const bytes = this.#bytes;
    let rest = value | 0;
    for (let i = start + places - 1; i >= start; i--) {
      const tenth = (rest / 10) | 0;
      bytes[i] = ZERO + rest - 10 * tenth;
      rest = tenth;
    }
  }

  /** Makes room, and returns where it begins. */
  #reserved(count: number): number {
    const start = this.#length;
    if (start + count > this.#bytes.length) this.#grow(count);
    this.#length = start + count;
    return start;
  }

  #grow(count: number): void {
    const wide = Buffer.allocUnsafeSlow(Math.max(2 * this.#bytes.length, this.#length + count));
    this.#bytes.copy(wide, 0, 0, this.#length);
    this.#bytes = wide;
  }
}

/** Of a number of at least 1 and less than 10^9; nine for what is beyond, by which it is split. */
function digitsOf(value: number): number {
  let digits = 1;
  for (let least = 10; value >= least; least *= 10) digits++;
  return digits;
}
