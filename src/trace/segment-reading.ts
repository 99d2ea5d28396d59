import { SegmentHoldback, type ReleasedLines } from "./segment-holdback.ts";
import { DecompressionLimitError } from "./segment-decompressed.ts";
import { TraceDecoder } from "./codec/decoder.ts";
import { type SkipReason, TraceFormatError, TraceVersionError } from "./codec/format-error.ts";
import { segmentFault, segmentLines } from "./segment-lines.ts";

/** A line of a segment, with its number from 1. */
export interface NumberedLine {
  readonly text: string;
  readonly number: number;
}

/** Lines that may be used, and what was found before them. The header is not among them. */
export interface LineGroup {
  readonly state: ReleasedLines["state"];
  readonly lines: readonly NumberedLine[];
  readonly faults: readonly { readonly reason: SkipReason; readonly message: string }[];
}

/** One segment's file, read once. */
export class SegmentReading {
  readonly #file: string;
  #decoder: TraceDecoder | undefined;
  #checked: SegmentHoldback | undefined;
  /** Numbers of the lines that are held back. */
  readonly #numbers: number[] = [];
  #line = 0;
  #faults: { reason: SkipReason; message: string }[] = [];
  #isClosed = false;
  /** Whether the file was looked through for damage that its end alone shows. */
  #isProbed = false;

  constructor(file: string) {
    this.#file = file;
  }

  /** Known from the first group on; undefined where the header cannot be read, and then there are no lines. */
  get decoder(): TraceDecoder | undefined {
    return this.#decoder;
  }

  /** Number of the last line that was read, from 1. */
  get line(): number {
    return this.#line;
  }

  /** How the file ends; when all groups were read. */
  get ending() {
    const checked = this.#checked?.isChecked === true ? this.#checked : undefined;
    return { crc32: checked?.crc32, isOver: checked?.isOver ?? false, isClosed: this.#isClosed };
  }

  /** Throws TraceVersionError, with the file, for a version that is not known. */
  async *groups(): AsyncGenerator<LineGroup> {
    let isTorn = false;
    for await (const { lines, fault, isClosed } of segmentLines(this.#file)) {
      this.#isClosed ||= isClosed === true;
      for (const line of lines) {
        this.#line++;
        if (this.#checked === undefined && !this.#open(line)) {
          yield this.#group("whole", []);
          return;
        }
        this.#numbers.push(this.#line);
        const released = this.#checked!.take(line);
        if (released === undefined) continue;
        if (released.state === "unchecked") await this.#probe();
        yield this.#released(released);
      }
      if (fault === "too-long") this.#line++;
      if (fault === "torn") isTorn = true;
      else if (fault !== undefined && !(fault === "corrupt" && this.#isProbed)) this.#fault(fault);
      this.#isProbed ||= fault === "corrupt";
    }
    if (this.#line === 0) this.#fault("torn", "expected a header, got the end of the file");
    // With checksums, what follows shows whether the end is missing or still to be written; after the end, nothing does.
    else if (isTorn && (this.#checked?.isChecked !== true || this.#checked.isOver)) this.#fault("torn");
    const released = this.#checked?.end();
    if (released?.state === "unchecked") await this.#probe();
    if (released !== undefined) yield this.#released(released);
    else if (this.#faults.length > 0) yield this.#group("whole", []);
  }

  #open(line: string): boolean {
    try {
      this.#decoder = new TraceDecoder(line);
    } catch (error) {
      if (error instanceof TraceVersionError) throw new TraceVersionError(`${this.#file}:1: ${error.message}`);
      if (!(error instanceof TraceFormatError)) throw error;
      this.#faults.push({ reason: error.reason, message: `${this.#file}:1: ${error.message}` });
      return false;
    }
    const { checked = false, continues = 0 } = this.#decoder.header;
    this.#checked = new SegmentHoldback(checked, continues);
    return true;
  }

  /** Of data without other checksums, the compressed frame's own stands at its very end. */
  async #probe(): Promise<void> {
    if (this.#isProbed) return;
    this.#isProbed = true;
    const fault = await segmentFault(this.#file);
    if (fault === "corrupt") this.#fault(fault);
  }

  #released({ state, lines }: ReleasedLines): LineGroup {
    const numbers = this.#numbers.splice(0, lines.length);
    // The check line itself.
    if (state === "whole" || state === "damaged") this.#numbers.length = 0;
    const numbered = lines.map((text, i) => ({ text, number: numbers[i]! }));
    return this.#group(
      state,
      numbered.filter(({ number }) => number > 1),
    );
  }

  #group(state: LineGroup["state"], lines: readonly NumberedLine[]): LineGroup {
    const faults = this.#faults;
    this.#faults = [];
    return { state, lines, faults };
  }

  #fault(reason: keyof typeof FAULT_WORDS, words = FAULT_WORDS[reason]): void {
    this.#faults.push({ reason, message: `${this.#file}:${this.#line + (reason === "too-long" ? 0 : 1)}: ${words}` });
  }
}

const FAULT_WORDS = {
  torn: "expected a complete line, got the end of the file",
  "too-long": "expected a record, got a line that is too long",
  "too-large": `${new DecompressionLimitError().message}; the rest of the file is left out`,
  corrupt: "expected zstd data, got damage; the rest of the file is lost",
};
