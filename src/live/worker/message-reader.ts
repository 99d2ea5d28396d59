import { NAMES_MAX } from "./message-writer.ts";

const BYTES_AT_START = 16_384;
const NUMBER_BYTES = 8;

/** Reads what a MessageWriter of another thread wrote, all of it in order. */
export class MessageReader {
  #bytes = Buffer.allocUnsafeSlow(BYTES_AT_START);
  #view = new DataView(this.#bytes.buffer);
  #at = 0;
  readonly #names: string[] = [];

  /** Room for a message of so many bytes, which is read from its start. */
  readonly room = (bytes: number): Uint8Array => {
    if (bytes > this.#bytes.length) {
      this.#bytes = Buffer.allocUnsafeSlow(2 * bytes);
      this.#view = new DataView(this.#bytes.buffer);
    }
    this.#at = 0;
    return this.#bytes.subarray(0, bytes);
  };

  byte(): number {
    return this.#bytes[this.#at++]!;
  }

  number(): number {
    const value = this.#view.getFloat64(this.#at, true);
    this.#at += NUMBER_BYTES;
    return value;
  }

  optional(): number | undefined {
    const value = this.number();
    return Number.isNaN(value) ? undefined : value;
  }

  text(): string {
    const length = this.#view.getUint32(this.#at, true);
    const start = this.#at + 4;
    this.#at = start + length;
    return this.#bytes.toString("utf8", start, this.#at);
  }

  name(): string {
    const number = this.#view.getUint16(this.#at, true);
    this.#at += 2;
    if (number < NAMES_MAX) return this.#names[number]!;
    const name = this.text();
    if (this.#names.length < NAMES_MAX) this.#names.push(name);
    return name;
  }

  words(): Int32Array {
    const length = this.#view.getUint32(this.#at, true);
    const start = this.#at + 4;
    this.#at = start + length * Int32Array.BYTES_PER_ELEMENT;
    const words = new Int32Array(length);
    new Uint8Array(words.buffer).set(this.#bytes.subarray(start, this.#at));
    return words;
  }
}
