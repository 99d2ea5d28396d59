const BYTES_AT_START = 4_096;

/** Bytes in order: whole numbers in as few bytes as they need (LEB128), texts once and by number after that. */
export class ByteWriter {
  #bytes = Buffer.allocUnsafe(BYTES_AT_START);
  #length = 0;
  readonly #texts = new Map<string, number>();

  get length(): number {
    return this.#length;
  }

  byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#length++] = value;
  }

  /** A safe integer of at least 0. */
  whole(value: number): void {
    this.#reserve(8);
    let rest = value;
    while (rest >= 0x80) {
      this.#bytes[this.#length++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.#bytes[this.#length++] = rest;
  }

  /** A whole number of at least 0, or undefined. */
  optional(value: number | undefined): void {
    this.whole(value === undefined ? 0 : value + 1);
  }

  text(value: string): void {
    const known = this.#texts.get(value);
    if (known !== undefined) return this.whole(known + 1);
    this.#texts.set(value, this.#texts.size);
    this.whole(0);
    const bytes = Buffer.from(value, "utf8");
    this.whole(bytes.length);
    this.#reserve(bytes.length);
    this.#length += bytes.copy(this.#bytes, this.#length);
  }

  /** Each word's four bytes, least significant first. */
  words(values: Int32Array): void {
    this.#reserve(4 * values.length);
    for (const value of values) this.#length = this.#bytes.writeInt32LE(value, this.#length);
  }

  taken(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    const wide = Buffer.allocUnsafe(Math.max(2 * this.#bytes.length, this.#length + count));
    this.#bytes.copy(wide, 0, 0, this.#length);
    this.#bytes = wide;
  }
}
