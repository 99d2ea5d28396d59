/** A chunk of an HTTP body (RFC 9112, 7.1) that lies whole in a read. */
export class WholeChunk {
  /** Its payload, in bytes[start..end). */
  start = 0;
  end = 0;
  /** Behind it. */
  next = 0;

  /** Finds the one that begins at `from`; false where it is not whole before `to`, is the last one, or has an extension. */
  at(bytes: Buffer, from: number, to: number): boolean {
    let size = 0;
    let at = from;
    for (; at < to && at - from < DIGITS_MAX; at++) {
      const digit = digitOf(bytes[at]!);
      if (digit < 0) break;
      size = size * 16 + digit;
    }
    if (size === 0 || at + size + MARKS > to) return false;
    const start = at + 2;
    const end = start + size;
    if (bytes[at] !== CR || bytes[at + 1] !== LF || bytes[end] !== CR || bytes[end + 1] !== LF) return false;
    this.start = start;
    this.end = end;
    this.next = end + 2;
    return true;
  }
}

/** Value of a hexadecimal digit; -1 of any other byte. */
function digitOf(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const letter = byte | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
}

const DIGITS_MAX = 8;
/** CRLF behind the size and behind the payload. */
const MARKS = 4;
const CR = 13;
const LF = 10;
