/** A longer line is no event of an inference server. */
export const SSE_LINE_BYTES_MAX = 8_388_608;

const NEWLINE = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;
const DATA = Buffer.from("data:");

/** Gets the payload of one `data:` line: `bytes[start, end)`. */
export type PayloadSink = (bytes: Buffer, start: number, end: number) => void;

/**
 * Finds the `data:` lines of a server-sent event stream in its bytes, however they are cut into chunks. A line ends with a
 * line feed, a carriage return, or both: the second of both ends an empty line, which has no meaning.
 */
export class SseReader {
  #held: Buffer[] = [];
  #heldBytes = 0;
  readonly #sink: PayloadSink;

  constructor(sink: PayloadSink) {
    this.#sink = sink;
  }

  /** False when a line is longer than the limit; the stream is then of no use. */
  push(chunk: Buffer): boolean {
    let start = 0;
    let feed = chunk.indexOf(NEWLINE);
    let carriage = chunk.indexOf(CARRIAGE_RETURN);
    while (feed >= 0 || carriage >= 0) {
      const isFeed = carriage < 0 || (feed >= 0 && feed < carriage);
      const end = isFeed ? feed : carriage;
      if (this.#heldBytes > 0) this.#finishHeld(chunk.subarray(0, end));
      else this.#line(chunk, start, end);
      start = end + 1;
      if (isFeed) feed = chunk.indexOf(NEWLINE, start);
      else carriage = chunk.indexOf(CARRIAGE_RETURN, start);
    }
    if (start < chunk.length) {
      this.#held.push(chunk.subarray(start));
      this.#heldBytes += chunk.length - start;
    }
    return this.#heldBytes <= SSE_LINE_BYTES_MAX;
  }

  /** Bytes of a line that was not ended. */
  get pendingBytes(): number {
    return this.#heldBytes;
  }

  #finishHeld(rest: Buffer): void {
    const line = Buffer.concat([...this.#held, rest]);
    this.#held = [];
    this.#heldBytes = 0;
    this.#line(line, 0, line.length);
  }

  #line(bytes: Buffer, start: number, end: number): void {
    if (end - start < DATA.length) return;
    for (let i = 0; i < DATA.length; i++) if (bytes[start + i] !== DATA[i]) return;
    const from = start + DATA.length;
    this.#sink(bytes, bytes[from] === SPACE ? from + 1 : from, end);
  }
}
