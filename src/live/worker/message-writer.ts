const BYTES_AT_START = 16_384;
/** Names that both ends remember; further ones are written out each time. */
export const NAMES_MAX = 4_096;
const NUMBER_BYTES = 8;
const UNITS_TO_BYTES = 3;

/**
 * Writes a message for another thread of this process: numbers as they are in memory, names that come again and again as
 * a number, which its reader learnt with the first. So what is written must be read, in order.
 */
export class MessageWriter {
  #bytes = Buffer.allocUnsafeSlow(BYTES_AT_START);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;
  readonly #names = new Map<string, number>();

  begin(kind: number): void {
    this.#length = 0;
    this.byte(kind);
  }

  /** Valid until the next one begins. */
  get message(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#length++] = value;
  }

  number(value: number): void {
    this.#reserve(NUMBER_BYTES);
    this.#view.setFloat64(this.#length, value, true);
    this.#length += NUMBER_BYTES;
  }

  /** NaN stands for undefined. */
  optional(value: number | undefined): void {
    this.number(value ?? NaN);
  }

  text(value: string): void {
    this.#reserve(NUMBER_BYTES + UNITS_TO_BYTES * value.length);
    const written = this.#bytes.write(value, this.#length + 4, "utf8");
    this.#view.setUint32(this.#length, written, true);
    this.#length += 4 + written;
  }

  /** A text that comes often, of a set that is not large. */
  name(value: string): void {
    const known = this.#names.get(value);
    this.#reserve(NUMBER_BYTES);
    this.#view.setUint16(this.#length, known ?? NAMES_MAX, true);
    this.#length += 2;
    if (known !== undefined) return;
    if (this.#names.size < NAMES_MAX) this.#names.set(value, this.#names.size);
    this.text(value);
  }

  words(values: Int32Array): void {
    this.#reserve(NUMBER_BYTES + values.byteLength);
    this.#view.setUint32(this.#length, values.length, true);
    this.#bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), this.#length + 4);
    this.#length += 4 + values.byteLength;
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    const wide = Buffer.allocUnsafeSlow(Math.max(2 * this.#bytes.length, this.#length + count));
    this.#bytes.copy(wide, 0, 0, this.#length);
    this.#bytes = wide;
    this.#view = new DataView(wide.buffer);
  }
}
