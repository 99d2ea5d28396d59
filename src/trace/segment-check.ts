import { crc32 } from "node:zlib";

/**
 * Checksums over the lines of a trace. After each group of lines, all that one append writes, stands
 *
 *     {"kind":"check","crc32":N}
 *
 * with the CRC-32 of all lines of the run up to here, newlines included and check lines left out. So a line that was
 * altered, lost, repeated or moved is found before anybody uses its group, and a group or a segment that was cut off by
 * what follows it. `"last":true` ends the run.
 */
export interface Check {
  readonly crc32: number;
  readonly isLast: boolean;
}

const CHECK_START = '{"kind":"check"';
const CHECK_LINE = /^\{"kind":"check","crc32":(0|[1-9]\d{0,9})(,"last":true)?\}$/;

export function isCheck(line: string): boolean {
  return line.startsWith(CHECK_START);
}

/** Undefined for a line that is not exactly as it is written. */
export function readCheck(line: string): Check | undefined {
  const found = CHECK_LINE.exec(line);
  return found === null ? undefined : { crc32: Number(found[1]), isLast: found[2] !== undefined };
}

/** The writer's side: bytes of whole lines go in, in order, and check lines come out. */
export class SegmentCheck {
  #crc = 0;

  /** The checksum up to here, which the next segment's header names. */
  get crc32(): number {
    return this.#crc;
  }

  /** What came after this checksum is lost. */
  continueAfter(crc: number): void {
    this.#crc = crc;
  }

  /** The line, with its newline, that is to follow `lines`. */
  after(lines: Uint8Array, isLast = false): string {
    this.#crc = crc32(lines, this.#crc);
    return `{"kind":"check","crc32":${this.#crc}${isLast ? ',"last":true' : ""}}\n`;
  }
}
