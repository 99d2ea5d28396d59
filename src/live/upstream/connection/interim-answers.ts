import { READ_SLAB } from "./read-slab.ts";

/** What came in place of an answer: how many bytes of the shared buffer are left, and what was kept of the reads before. */
export interface BehindInterim {
  readonly bytes: number;
  /** Goes before them; undefined where nothing was kept. */
  readonly kept: Buffer | undefined;
}

const NOTHING_LEFT: BehindInterim = { bytes: 0, kept: undefined };
/** Of HTTP/1.0 and 1.1; where a digit may be anything there is a space. */
const STATUS_LINE = Buffer.from("HTTP/1.  1  ");
const SPACE = 32;
const SWITCHES = "01";
const HEAD_END = Buffer.from("\r\n\r\n");
/** Of one interim answer; a longer one is no such thing. */
const HEAD_BYTES_MAX = 16_384;

/**
 * Passes over interim answers (RFC 9110 15.2), which may come before any answer, asked for or not: 100, 102, 103. Undici
 * takes a 100 that it did not ask for as the end of its connection. 101 is none of them: another protocol begins.
 */
export class InterimAnswers {
  /** Of an interim answer, or of what may be one, while its end is to come. */
  #kept: Buffer | undefined;

  /** A request goes out. */
  begin(): void {
    this.#kept = undefined;
  }

  /** Takes them out of what was read into the shared buffer. Nothing is left while one is still coming. */
  passOver(bytes: number): BehindInterim {
    const kept = this.#kept;
    const { read } = READ_SLAB;
    if (kept === undefined && bytes > STATUS_LINE.length && !isInterim(read, bytes)) return { bytes, kept };
    const before = kept?.length ?? 0;
    const came = kept === undefined ? read.subarray(0, bytes) : Buffer.concat([kept, read.subarray(0, bytes)]);
    let from = 0;
    while (from < came.length) {
      const rest = came.subarray(from);
      if (!isInterim(rest, rest.length)) break;
      const end = rest.indexOf(HEAD_END);
      if (end < 0 && rest.length > HEAD_BYTES_MAX) break;
      if (end < 0) {
        this.#kept = Buffer.from(rest);
        return NOTHING_LEFT;
      }
      from += end + HEAD_END.length;
    }
    this.#kept = undefined;
    if (from < before) return { bytes, kept: came.subarray(from, before) };
    read.copyWithin(0, from - before, bytes);
    return { bytes: bytes - (from - before), kept: undefined };
  }
}

/** Or its beginning, as far as that came. */
function isInterim(bytes: Buffer, length: number): boolean {
  for (let i = 0; i < STATUS_LINE.length && i < length; i++) {
    if (STATUS_LINE[i] !== SPACE && STATUS_LINE[i] !== bytes[i]) return false;
  }
  if (length > 8 && bytes[8] !== SPACE) return false;
  return length < STATUS_LINE.length || bytes.toString("latin1", 10, 12) !== SWITCHES;
}
