const TEXT_BYTES_MAX = 65_536;
const LEB_BYTES_MAX = 8;

/** What came from another process is not as this version writes it. */
export class WireError extends Error {
  override readonly name: string = "WireError";
}

/** Reads what ByteWriter wrote; throws WireError for anything else. */
export class ByteReader {
  readonly #bytes: Buffer;
  #at = 0;
  readonly #texts: string[] = [];

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  byte(): number {
    return this.#bytes[this.#take(1)]!;
  }

  whole(): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < LEB_BYTES_MAX; i++) {
      const byte = this.byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        if (!Number.isSafeInteger(value)) break;
        return value;
      }
      scale *= 0x80;
    }
    throw new WireError("a number is too large");
  }

  positive(): number {
    const value = this.whole();
    if (value === 0) throw new WireError("a number is 0");
    return value;
  }

  optional(): number | undefined {
    const value = this.whole();
    return value === 0 ? undefined : value - 1;
  }

  text(): string {
    const number = this.whole();
    if (number > 0) {
      const known = this.#texts[number - 1];
      if (known === undefined) throw new WireError("a text has a number that none has");
      return known;
    }
    const length = this.whole();
    if (length > TEXT_BYTES_MAX) throw new WireError("a text is too long");
    const start = this.#take(length);
    const text = this.#bytes.toString("utf8", start, start + length);
    this.#texts.push(text);
    return text;
  }

  words(count: number): Int32Array {
    let at = this.#take(4 * count);
    const words = new Int32Array(count);
    for (let i = 0; i < count; i++, at += 4) words[i] = this.#bytes.readInt32LE(at);
    return words;
  }

  #take(count: number): number {
    const start = this.#at;
    if (start + count > this.#bytes.length) throw new WireError("it ends too early");
    this.#at = start + count;
    return start;
  }
}
