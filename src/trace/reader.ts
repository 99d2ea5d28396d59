import type { Input } from "#core/input.ts";
import { TraceDecoder } from "./decoder.ts";
import { type SkipReason, TraceFormatError } from "./fields.ts";
import type { TraceHeader, TraceItem } from "./record.ts";
import { segmentLines } from "./segment-lines.ts";
import { segmentFiles } from "./segment-name.ts";

/** What reading a trace came to. Nothing that was left out is missing here. */
export interface TraceReport {
  segments: number;
  records: number;
  /** Records that the recorder had dropped, as its gaps tell. */
  dropped: number;
  /** Records whose time lies before that of the record above them. They are given out as they are. */
  unordered: number;
  /** Segments that are missing between others of their run. */
  segmentsMissing: number;
  /** Lines that were not used, by reason. */
  readonly skipped: Partial<Record<SkipReason, number>>;
  /** The first few of them, with file and line. */
  readonly examples: string[];
}

const EXAMPLES_MAX = 10;
/** Ids remembered as in flight, oldest forgotten first; only a recorder that dropped many ends can reach it. */
const IN_FLIGHT_MAX = 1_000_000;

/**
 * Reads a trace, a file or a folder of segments, as a stream. A line that cannot be used is left out and counted in
 * `report`, with `strict` it is an error. A file that is no trace, or of a version that is not known, is always an error.
 */
export class TraceReader {
  readonly report: TraceReport = {
    segments: 0,
    records: 0,
    dropped: 0,
    unordered: 0,
    segmentsMissing: 0,
    skipped: {},
    examples: [],
  };
  readonly #path: string;
  readonly #strict: boolean;
  readonly #inFlight = new Set<string>();
  #last: TraceHeader | undefined;
  #lastAt = 0;

  constructor(path: string, options: { readonly strict?: boolean } = {}) {
    this.#path = path;
    this.#strict = options.strict ?? false;
  }

  /** Every item in order. May be called once. Throws an Error whose message names the file and the line. */
  async *items(): AsyncGenerator<TraceItem> {
    const files = await segmentFiles(this.#path);
    for (const file of files) yield* this.#segment(file);
    if (this.#last === undefined) {
      const why = this.report.examples[0];
      throw new Error(
        `${this.#path}: expected a trace, got nothing that could be read${why === undefined ? "" : ` (${why})`}`,
      );
    }
  }

  async *#segment(file: string): AsyncGenerator<TraceItem> {
    let decoder: TraceDecoder | undefined;
    let lineNumber = 0;
    for await (const { lines, fault } of segmentLines(file)) {
      for (const line of lines) {
        lineNumber++;
        if (decoder === undefined) {
          decoder = openSegment(line, file);
          if (this.#begins(decoder.header)) yield { kind: "run", header: decoder.header };
          continue;
        }
        const item = this.#decode(decoder, line, file, lineNumber);
        if (item !== undefined) yield item;
      }
      if (fault === "too-long") lineNumber++;
      if (fault !== undefined)
        this.#skip(fault, `${file}:${fault === "too-long" ? lineNumber : lineNumber + 1}: ${FAULT_WORDS[fault]}`);
    }
    if (lineNumber === 0) this.#skip("torn", `${file}:1: expected a header, got the end of the file`);
  }

  /** Whether a segment is the start of something, rather than the next part of what was read last. */
  #begins(header: TraceHeader): boolean {
    const last = this.#last;
    this.#last = header;
    this.report.segments++;
    const sameRun = last?.run === header.run && header.segment > last.segment;
    if (sameRun && header.segment === last.segment + 1) return false;
    this.report.segmentsMissing += sameRun ? header.segment - last.segment - 1 : header.segment;
    this.#inFlight.clear();
    this.#lastAt = 0;
    return true;
  }

  #decode(decoder: TraceDecoder, line: string, file: string, lineNumber: number): TraceItem | undefined {
    try {
      const item = decoder.decode(line);
      if (item.kind === "record") this.#admit(item.input);
      else this.report.dropped += item.dropped;
      return item;
    } catch (error) {
      if (!(error instanceof TraceFormatError)) throw error;
      this.#skip(error.reason, `${file}:${lineNumber}: ${error.message}`);
      return undefined;
    }
  }

  #admit(input: Input): void {
    if (input.kind === "request-arrived") {
      const { id } = input.request;
      if (this.#inFlight.has(id))
        throw new TraceFormatError(
          "duplicate-id",
          `request.id: expected one that is not in flight, got ${JSON.stringify(id)} again`,
        );
      this.#inFlight.add(id);
      if (this.#inFlight.size > IN_FLIGHT_MAX) this.#inFlight.delete(this.#inFlight.values().next().value ?? id);
    } else if (input.kind === "request-finished") this.#inFlight.delete(input.requestId);
    this.report.records++;
    if (input.at < this.#lastAt) this.report.unordered++;
    this.#lastAt = input.at;
  }

  #skip(reason: SkipReason, message: string): void {
    if (this.#strict) throw new Error(message);
    this.report.skipped[reason] = (this.report.skipped[reason] ?? 0) + 1;
    if (this.report.examples.length < EXAMPLES_MAX) this.report.examples.push(message);
  }
}

const FAULT_WORDS = {
  torn: "expected a complete line, got the end of the file",
  "too-long": "expected a record, got a line that is too long",
  corrupt: "expected zstd data, got damage; the rest of the file is lost",
};

function openSegment(line: string, file: string): TraceDecoder {
  try {
    return new TraceDecoder(line);
  } catch (error) {
    throw error instanceof TraceFormatError ? new Error(`${file}:1: ${error.message}`) : error;
  }
}
