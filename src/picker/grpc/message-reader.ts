/** How a field's value is written on the wire. */
const VARINT = 0;
const FIXED_64 = 1;
/** With its length before it: bytes, texts, messages. */
export const WITH_LENGTH = 2;
const FIXED_32 = 5;

const CONTINUES = 0x80;
const LOW_BITS = 0x7f;
const BITS_IN_32 = 28;
const VARINT_BYTES_MAX = 10;
const TAG_MAX = 0xffff_ffff;
/** Fields that are gone through in one message, those of messages in it among them: some ms, whatever its bytes are. */
const FIELDS_MAX = 65_536;

/** What a field of a message begins with: its number and how its value is written. */
export function tagOf(field: number, wire: number): number {
  return (field << 3) | wire;
}

/** Bytes that are no message of protocol buffers. */
export class BadMessage extends Error {}

/** Goes through the fields of a message of protocol buffers, and of the messages in it. Values are parts of its bytes. */
export class MessageReader {
  /** Of the field that `next` came to. */
  tag = 0;
  readonly #bytes: Buffer;
  readonly #fields: { left: number };
  #at = 0;
  #end: number;

  constructor(bytes: Buffer, fields: { left: number } = { left: FIELDS_MAX }) {
    this.#bytes = bytes;
    this.#fields = fields;
    this.#end = bytes.length;
  }

  /** Of a message in this one, which counts its fields with it. */
  within(bytes: Buffer): MessageReader {
    return new MessageReader(bytes, this.#fields);
  }

  /** Goes to the next field; false at the end of the message. */
  next(): boolean {
    if (this.#at === this.#end) return false;
    this.tag = this.varint();
    if (this.tag >> 3 === 0 || this.tag > TAG_MAX) throw new BadMessage("a field without a number that is in use");
    if (this.#fields.left-- === 0) throw new BadMessage(`more than ${FIELDS_MAX} fields`);
    return true;
  }

  /** A number; above 32 bits of it only whether it is 0 is exact. */
  varint(): number {
    const bytes = this.#bytes;
    let value = 0;
    for (let read = 0; read < VARINT_BYTES_MAX; read++) {
      if (this.#at === this.#end) throw new BadMessage("a number beyond the message");
      const byte = bytes[this.#at++]!;
      const low = byte & LOW_BITS;
      const shift = 7 * read;
      value += shift < BITS_IN_32 ? low << shift : low * 2 ** shift;
      if ((byte & CONTINUES) === 0) return value;
    }
    throw new BadMessage("a number of more than ten bytes");
  }

  bytes(): Buffer {
    const end = this.#endOfValue();
    const from = this.#at;
    this.#at = end;
    return this.#bytes.subarray(from, this.#at);
  }

  utf8(): string {
    const end = this.#endOfValue();
    const from = this.#at;
    this.#at = end;
    return this.#bytes.toString("utf8", from, this.#at);
  }

  /** Bytes as the characters of those numbers. */
  latin1(): string {
    const end = this.#endOfValue();
    const from = this.#at;
    this.#at = end;
    return this.#bytes.toString("latin1", from, this.#at);
  }

  /** Goes into a message; `next` then goes through its fields. What is returned is for `leave`. */
  enter(): number {
    const outer = this.#end;
    this.#end = this.#endOfValue();
    return outer;
  }

  leave(outer: number): void {
    this.#at = this.#end;
    this.#end = outer;
  }

  /** Passes over a field that nobody here knows. */
  skip(): void {
    switch (this.tag & 7) {
      case VARINT:
        this.varint();
        break;
      case WITH_LENGTH:
        this.#at = this.#endOfValue();
        break;
      case FIXED_64:
        this.#pass(8);
        break;
      case FIXED_32:
        this.#pass(4);
        break;
      default:
        throw new BadMessage("a field of no kind that is in use");
    }
  }

  #pass(count: number): void {
    if (count > this.#end - this.#at) throw new BadMessage("a field beyond the message");
    this.#at += count;
  }

  #endOfValue(): number {
    const length = this.varint();
    if (length > this.#end - this.#at) throw new BadMessage("a field beyond the message");
    return this.#at + length;
  }
}
