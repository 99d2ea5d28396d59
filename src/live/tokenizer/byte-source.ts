import { type Asker, loopTurn } from "../base/loop-turn.ts";
import { textSlices } from "./text-slices.ts";
import type { WordStep, WordSource } from "./text/word-source.ts";

/** Bytes that UTF-8 never contains: the end of a tag, and the end of a step. */
const TAG_END = 0xfe;
const STEP_END = 0xff;
const UTF8_BYTES_MAX = 3;
/** Characters packed at once, about 0.1 ms. Longer texts go in turns, into memory of their own. */
const CHARS_PER_SLICE = 1 << 16;
/** Both ends, and up to a whole word. */
const BYTES_AROUND = 6;

/** Text as bytes, four to a word: `tag 0xFE text 0xFF`, filled up with 0xFF. */
export class ByteSource implements WordSource {
  #bytes: Buffer = Buffer.alloc(0);
  #words: Int32Array = new Int32Array(0);

  words({ tag, text }: WordStep, _comesAgain: boolean, asker: Asker): Int32Array | Promise<Int32Array> {
    if (text.length > CHARS_PER_SLICE) return packSlowly(tag, text, asker);
    const most = UTF8_BYTES_MAX * (tag.length + text.length) + BYTES_AROUND;
    if (most > this.#bytes.length) [this.#bytes, this.#words] = room(Math.max(most, UTF8_BYTES_MAX * CHARS_PER_SLICE));
    const bytes = this.#bytes;
    let at = writeTag(tag, bytes);
    at += bytes.write(text, at, "utf8");
    return this.#words.subarray(0, endStep(bytes, at) / 4);
  }
}

async function packSlowly(tag: string, text: string, asker: Asker): Promise<Int32Array> {
  const [bytes, words] = room(Buffer.byteLength(tag) + Buffer.byteLength(text) + BYTES_AROUND);
  let at = writeTag(tag, bytes);
  for (const slice of textSlices(text, CHARS_PER_SLICE)) {
    await loopTurn(asker);
    at += bytes.write(slice, at, "utf8");
  }
  return words.subarray(0, endStep(bytes, at) / 4);
}

function writeTag(tag: string, bytes: Buffer): number {
  const at = tag === "" ? 0 : bytes.write(tag, "utf8");
  bytes[at] = TAG_END;
  return at + 1;
}

function endStep(bytes: Buffer, from: number): number {
  let at = from;
  do bytes[at++] = STEP_END;
  while (at % 4 !== 0);
  return at;
}

function room(bytesMin: number): [Buffer, Int32Array] {
  const buffer = new ArrayBuffer(Math.ceil(bytesMin / 4) * 4);
  return [Buffer.from(buffer), new Int32Array(buffer)];
}
