import type { Step, WordSource } from "./word-source.ts";

/** Bytes that UTF-8 never contains: the end of a tag, and the end of a step. */
const TAG_END = 0xfe;
const STEP_END = 0xff;
const SCRATCH_BYTES_MIN = 1 << 16;
const UTF8_BYTES_MAX = 3;
/** A larger scratch, which a very long message made, is given back. */
const SCRATCH_BYTES_MAX = 1 << 20;

/** Text as bytes, four to a word: `tag 0xFE text 0xFF`, filled up with 0xFF. */
export class ByteSource implements WordSource {
  #bytes = Buffer.alloc(0);
  #words = new Int32Array(0);

  words({ tag, text }: Step): Int32Array {
    const most = UTF8_BYTES_MAX * (tag.length + text.length) + 6;
    if (most > this.#bytes.length || this.#bytes.length > SCRATCH_BYTES_MAX) this.#resize(most);
    const bytes = this.#bytes;
    let at = tag === "" ? 0 : bytes.write(tag, "utf8");
    bytes[at++] = TAG_END;
    at += bytes.write(text, at, "utf8");
    do bytes[at++] = STEP_END;
    while (at % 4 !== 0);
    return this.#words.subarray(0, at / 4);
  }

  #resize(bytesMin: number): void {
    const buffer = new ArrayBuffer(Math.max(SCRATCH_BYTES_MIN, Math.ceil((1.5 * bytesMin) / 4) * 4));
    this.#bytes = Buffer.from(buffer);
    this.#words = new Int32Array(buffer);
  }
}
