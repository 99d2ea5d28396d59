/**
 * Bytes that are compared with those of each streamed event, four at a time: a third of what it takes one by one. Native
 * code has to be called, which takes as long as comparing some hundred bytes.
 */
export class ByteRun {
  readonly #words: Int32Array;
  readonly #rest: Uint8Array;
  readonly length: number;

  constructor(bytes: Uint8Array) {
    this.length = bytes.length;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#words = Int32Array.from({ length: bytes.length >> 2 }, (_, i) => view.getInt32(4 * i, true));
    this.#rest = Uint8Array.from(bytes.subarray(4 * this.#words.length));
  }

  /** Whether the bytes at `at` are these. */
  isAt(bytes: DataView, at: number): boolean {
    if (at + this.length > bytes.byteLength) return false;
    const words = this.#words;
    let place = at;
    for (let i = 0; i < words.length; i++, place += 4) if (bytes.getInt32(place, true) !== words[i]) return false;
    const rest = this.#rest;
    for (let i = 0; i < rest.length; i++) if (bytes.getUint8(place + i) !== rest[i]) return false;
    return true;
  }
}

let last: Uint8Array = new Uint8Array(0);
let lastView = new DataView(last.buffer);

/** A view of the bytes; of the buffer that all reads go into, the same one each time. */
export function viewOf(bytes: Uint8Array): DataView {
  if (bytes !== last) {
    lastView = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    last = bytes;
  }
  return lastView;
}
