import { tagOf, WITH_LENGTH } from "./message-reader.ts";
import { HEAD_BYTES } from "./message-frames.ts";

const CONTINUES = 0x80;
const LOW_BITS = 0x7f;
const VARINT_BYTES_MAX = 5;
/** What messages hold beside the bytes that are counted before. */
const SPARE_BYTES = 512;

/**
 * Writes messages of protocol buffers from their ends to their beginnings, so that the length of each is known as it is written
 * before it; with `frame` they are gRPC's. Fields, and messages, are given in reverse.
 */
export class MessageWriter {
  #buffer: Buffer;
  #at: number;

  /** `bytes`: an estimate of the large parts. */
  constructor(bytes = 0) {
    this.#buffer = Buffer.allocUnsafe(bytes + SPARE_BYTES);
    this.#at = this.#buffer.length;
  }

  /** What was written so far; for `message` and `frame`, which give what was written since a length. */
  get length(): number {
    return this.#buffer.length - this.#at;
  }

  /** What was written, which is at its end then. */
  written(): Buffer {
    return this.#buffer.subarray(this.#at);
  }

  number(field: number, value: number): void {
    this.#varint(value);
    this.#varint(tagOf(field, 0));
  }

  text(field: number, value: string): void {
    const length = Buffer.byteLength(value);
    this.#room(length);
    this.#at -= length;
    this.#buffer.write(value, this.#at, length, "utf8");
    this.#lengthOf(field, length);
  }

  /** Characters as the bytes of their numbers. */
  latin1(field: number, value: string): void {
    const { length } = value;
    this.#room(length);
    this.#at -= length;
    this.#buffer.write(value, this.#at, length, "latin1");
    this.#lengthOf(field, length);
  }

  bytes(field: number, value: Buffer): void {
    this.#room(value.length);
    this.#at -= value.length;
    this.#buffer.set(value, this.#at);
    this.#lengthOf(field, value.length);
  }

  /** Makes what was written since `from` a message in a field. */
  message(field: number, from: number): void {
    this.#lengthOf(field, this.length - from);
  }

  /** Makes what was written since `from` one of gRPC's messages. */
  frame(from: number): void {
    const length = this.length - from;
    this.#room(HEAD_BYTES);
    this.#at -= HEAD_BYTES;
    this.#buffer[this.#at] = 0;
    this.#buffer.writeUInt32BE(length, this.#at + 1);
  }

  #lengthOf(field: number, length: number): void {
    this.#varint(length);
    this.#varint(tagOf(field, WITH_LENGTH));
  }

  /** Of at most 32 bits. */
  #varint(value: number): void {
    this.#room(VARINT_BYTES_MAX);
    let size = 1;
    for (let rest = value >>> 7; rest > 0; rest >>>= 7) size++;
    this.#at -= size;
    let rest = value;
    for (let i = 0; i < size; i++, rest >>>= 7)
      this.#buffer[this.#at + i] = i === size - 1 ? rest : (rest & LOW_BITS) | CONTINUES;
  }

  #room(bytes: number): void {
    if (bytes <= this.#at) return;
    const { length } = this;
    const larger = Buffer.allocUnsafe(2 * (length + bytes));
    this.#buffer.copy(larger, larger.length - length, this.#at);
    this.#buffer = larger;
    this.#at = larger.length - length;
  }
}
