import type { Input } from "#core/input/input.ts";
import type { TraceDecoder } from "./codec/decoder.ts";
import { type SkipReason, TraceFormatError } from "./codec/format-error.ts";
import type { TraceGap, TraceHeader, TraceItem } from "./codec/record.ts";
import { segmentFiles } from "./segment-name.ts";
import { SegmentReading } from "./segment-reading.ts";

/** What reading a trace came to. Nothing that was left out is missing here. */
export interface TraceReport {
  segments: number;
  records: number;
  /** Records that the recorder had dropped, as its gaps state. */
  dropped: number;
  /** Records whose time lies before that of the record above them. They are given out as they are. */
  unordered: number;
  /** Segments that are missing before, between or after others of their run. */
  segmentsMissing: number;
  /** Runs without an end: still being recorded, or their recorder was killed, or the file was cut off. */
  unended: number;
  /** Lines, or groups of them, that were not used as they stand, by reason. */
  readonly skipped: Partial<Record<SkipReason, number>>;
  /** The first few of them, with file and line. */
  readonly examples: string[];
}

const EXAMPLES_MAX = 10;
/** Lines of one file that are no JSON; behind so many, the rest of it is left out. */
const NO_JSON_LINES_MAX = 10_000;
/** Ids remembered as in flight, oldest forgotten first; only a recorder that dropped many ends can reach it. */
const IN_FLIGHT_MAX = 1_000_000;

/** The segment that was read last. */
interface Last {
  readonly file: string;
  readonly header: TraceHeader;
  /** undefined: without checksums. */
  readonly crc32: number | undefined;
  readonly isOver: boolean;
  /** Whether the file was closed by its writer, who goes on in another one unless the run is over. */
  readonly isClosed: boolean;
  readonly linesOpen: number;
}

/**
 * Reads a trace, a file or a folder of segments, as a stream. A line that cannot be used is left out and counted in
 * `report`, with `strict` it is an error; so are segments that are missing. Where anything is missing or not as it was
 * written, a gap stands before what follows. A file that is no trace is an error unless others beside it are one; a
 * version that is not known is always one.
 */
export class TraceReader {
  readonly report: TraceReport = {
    segments: 0,
    records: 0,
    dropped: 0,
    unordered: 0,
    segmentsMissing: 0,
    unended: 0,
    skipped: {},
    examples: [],
  };
  readonly #path: string;
  readonly #strict: boolean;
  readonly #inFlight = new Set<string>();
  #last: Last | undefined;
  #lastAt = 0;
  #hasRun = false;

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
    this.#endRun(this.#last);
  }

  async *#segment(file: string): AsyncGenerator<TraceItem> {
    const reading = new SegmentReading(file);
    let decoder: TraceDecoder | undefined;
    let linesOpen = 0;
    const noJsonBefore = this.#noJson;
    for await (const { state, lines, faults } of reading.groups()) {
      if (decoder === undefined && reading.decoder !== undefined) {
        decoder = reading.decoder;
        yield* this.#begin(file, decoder.header);
      }
      for (const fault of faults) {
        const gap = this.#skip(fault.reason, fault.message);
        if (this.#hasRun) yield gap;
      }
      if (state === "damaged") yield this.#skip("corrupt", `${file}:${reading.line}: ${DAMAGED}`);
      else if (state === "open") {
        // Nothing shows whether they are all: they count as traffic, and no decision is compared with them.
        linesOpen += lines.length;
        yield { kind: "gap", at: this.#lastAt, dropped: 1, damage: `${file}: ${OPEN}` };
      }
      for (const { text, number } of lines) {
        const item = decoder && this.#decode(decoder, text, `${file}:${number}`);
        if (item !== undefined) yield item;
        if (this.#noJson - noJsonBefore > NO_JSON_LINES_MAX) break;
      }
      if (this.#noJson - noJsonBefore > NO_JSON_LINES_MAX) {
        const gap = this.#skip("corrupt", `${file}: ${NO_TRACE}`);
        // The first lines of the kind fill the examples.
        if (gap.damage !== undefined) this.report.examples.splice(0, this.report.examples.length, gap.damage);
        yield gap;
        break;
      }
    }
    if (decoder === undefined) return;
    const { header } = decoder;
    this.#last = { file, header, linesOpen, ...reading.ending };
  }

  /** A segment begins: the start of something, or the next part of what was read last. */
  *#begin(file: string, header: TraceHeader): Generator<TraceItem> {
    const last = this.#last;
    this.report.segments++;
    const isSameRun = last?.header.run === header.run && header.segment > last.header.segment;
    if (isSameRun && header.segment === last.header.segment + 1) {
      if (header.continues === undefined ? last.isOver : header.continues !== last.crc32 || last.linesOpen > 0)
        yield this.#skip("torn", `${last.file}: expected all lines before ${file}, got the end of the file`);
      return;
    }
    if (last !== undefined && !isSameRun) this.#endRun(last);
    this.#miss(isSameRun ? header.segment - last.header.segment - 1 : header.segment, `before ${file}`);
    this.#inFlight.clear();
    this.#lastAt = 0;
    this.#hasRun = true;
    yield { kind: "run", header };
  }

  #endRun({ file, crc32, isOver, isClosed }: Last): void {
    if (isOver || crc32 === undefined) return;
    // Who closes a segment without ending the run goes on in another one.
    if (isClosed) this.#miss(1, `after ${file}, which does not end the run`);
    else this.report.unended++;
  }

  #miss(count: number, where: string): void {
    if (count === 0) return;
    if (this.#strict)
      throw new Error(`expected all segments of the run, got ${count === 1 ? "one" : count} missing ${where}`);
    this.report.segmentsMissing += count;
  }

  #decode(decoder: TraceDecoder, line: string, place: string): TraceItem {
    try {
      const item = decoder.decode(line);
      if (item.kind === "record") this.#admit(item.input);
      else this.report.dropped += item.dropped;
      return item;
    } catch (error) {
      if (!(error instanceof TraceFormatError)) throw error;
      return this.#skip(error.reason, `${place}: ${error.message}`);
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

  /** Lines that were left out because they are no JSON. */
  get #noJson(): number {
    return this.report.skipped["not-json"] ?? 0;
  }

  #skip(reason: SkipReason, message: string): TraceGap {
    if (this.#strict) throw new Error(message);
    this.report.skipped[reason] = (this.report.skipped[reason] ?? 0) + 1;
    if (this.report.examples.length < EXAMPLES_MAX) this.report.examples.push(message);
    return { kind: "gap", at: this.#lastAt, dropped: 1, damage: message };
  }
}

const NO_TRACE = `expected records, got more than ${NO_JSON_LINES_MAX} lines that are no JSON; the rest of the file is left out`;
const DAMAGED = "expected the lines up to here as they were written, got others: altered, lost, repeated or moved";
const OPEN = "expected a checksum after the last lines, got the end of the file";
