import { crc32 } from "node:zlib";
import { isCheck, readCheck } from "./segment-check.ts";

/**
 * Lines that may be used now.
 *
 * - whole: as they were written, and nothing is missing before them.
 * - unchecked: of a trace without checksums.
 * - damaged: altered, or something is missing among or before them.
 * - open: no checksum follows, where the file ends.
 */
export interface ReleasedLines {
  readonly state: "whole" | "unchecked" | "damaged" | "open";
  readonly lines: readonly string[];
}

/** Characters held back at most. A recorder's groups have half a million and a line more. */
const HELD_CHARS_MAX = 33_554_432;
/** What a line takes beside its characters, so that empty ones count too. */
const LINE_CHARS = 64;
/** Without a checksum by then, there are none. */
const UNCHECKED_CHARS = 4_194_304;

/** Holds the lines of one segment back until the checksum after them shows that they are as they were written. */
export class SegmentHoldback {
  #crc: number;
  /** Whether checksums are there; undefined while nothing shows it. */
  #isChecked: boolean | undefined;
  #held: string[] = [];
  #heldChars = 0;
  #isOver = false;

  /** `promised`: what the segment's header states. `continues`: the checksum at the end of the segment before. */
  constructor(promised: boolean, continues: number) {
    this.#crc = continues;
    this.#isChecked = promised ? true : undefined;
  }

  get isChecked(): boolean {
    return this.#isChecked === true;
  }

  /** Whether the run was ended here. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** The checksum up to the last check. Of no use while lines are held. */
  get crc32(): number {
    return this.#crc;
  }

  /** Takes a line without its newline; undefined while it is held. */
  take(line: string): ReleasedLines | undefined {
    if (isCheck(line)) return this.#check(line);
    if (this.#isChecked === false) return { state: "unchecked", lines: [line] };
    this.#held.push(line);
    this.#heldChars += line.length + LINE_CHARS;
    if (this.#heldChars > HELD_CHARS_MAX) return this.#release("damaged");
    if (this.#isChecked === true || this.#heldChars <= UNCHECKED_CHARS) return undefined;
    this.#isChecked = false;
    return this.#release("unchecked");
  }

  /** What is held where the file ends; undefined for nothing. */
  end(): ReleasedLines | undefined {
    if (this.#held.length === 0) return undefined;
    return this.#release(this.#isChecked === true ? (this.#isOver ? "damaged" : "open") : "unchecked");
  }

  #check(line: string): ReleasedLines {
    const check = readCheck(line);
    const isLate = this.#isChecked === false || this.#isOver;
    this.#isChecked = true;
    if (check === undefined) return this.#release("damaged");
    let crc = this.#crc;
    for (const held of this.#held) crc = crc32(`${held}\n`, crc);
    // A check of nothing was repeated, unless it ends the run.
    const isWhole = !isLate && crc === check.crc32 && (this.#held.length > 0 || check.isLast);
    // What follows is judged by itself.
    this.#crc = check.crc32;
    this.#isOver ||= check.isLast;
    return this.#release(isWhole ? "whole" : "damaged");
  }

  #release(state: ReleasedLines["state"]): ReleasedLines {
    const lines = this.#held;
    this.#held = [];
    this.#heldChars = 0;
    return { state, lines };
  }
}
