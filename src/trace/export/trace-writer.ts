import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { TraceEncoder } from "../codec/encoder.ts";
import { SegmentCheck } from "../segment-check.ts";
import type { TraceItem } from "../codec/record.ts";
import { segmentName } from "../segment-name.ts";
import { SegmentWriter, TRACE_FOLDER_MODE } from "../segment-writer.ts";
import { FleetState } from "../transform/fleet-state.ts";

export interface TraceWriterOptions {
  /** Compressed size at which a new segment begins. */
  readonly segmentBytesMax: number;
}

const BATCH_BYTES = 524_288;
const COMPRESSION_LEVEL = 3;

/** Writes a trace's items to segments in a folder, which is made if it is not there; a run begins a segment. */
export class TraceWriter {
  readonly #directory: string;
  readonly #options: TraceWriterOptions;
  #encoder: TraceEncoder | undefined;
  #fleet: FleetState | undefined;
  #segment: SegmentWriter | undefined;
  #segmentNumber = 0;
  #check = new SegmentCheck();
  runs = 0;
  records = 0;
  /** Compressed bytes on the disk. */
  bytes = 0;

  constructor(directory: string, options: TraceWriterOptions = { segmentBytesMax: 67_108_864 }) {
    this.#directory = directory;
    this.#options = options;
  }

  /** Rejects with the system's error when it cannot be written, or when the first item is no run. */
  async write(item: TraceItem): Promise<void> {
    if (item.kind === "run") {
      await this.#endSegment(true);
      this.#fleet = new FleetState(item.header);
      this.#segmentNumber = 0;
      this.#check = new SegmentCheck();
      this.runs++;
      return this.#beginSegment();
    }
    if (this.#encoder === undefined || this.#fleet === undefined)
      throw new Error("expected a run before its records, got a record");
    if (item.kind === "gap") this.#encoder.gap(item.at, item.dropped);
    else {
      this.#encoder.record(item.input, item.decision);
      this.#fleet.take(item.input);
      this.records++;
    }
    if (this.#encoder.lines.length < BATCH_BYTES) return;
    await this.#flush();
    if ((this.#segment?.bytes ?? 0) < this.#options.segmentBytesMax) return;
    await this.#endSegment(false);
    this.#segmentNumber++;
    await this.#beginSegment();
  }

  async close(): Promise<void> {
    await this.#endSegment(true);
  }

  async #beginSegment(): Promise<void> {
    if (this.#fleet === undefined) return;
    const { continues: _, ...kept } = this.#fleet.header(this.#segmentNumber);
    const continues = this.#segmentNumber > 0 ? { continues: this.#check.crc32 } : {};
    const header = { ...kept, checked: true, ...continues };
    await mkdir(this.#directory, { recursive: true, mode: TRACE_FOLDER_MODE });
    const name = segmentName(header.startWallMicros, header.run, header.segment);
    this.#segment = await SegmentWriter.create(join(this.#directory, name), {
      compressionLevel: COMPRESSION_LEVEL,
      syncEveryAppend: false,
    });
    this.#encoder = new TraceEncoder({ blockTokens: header.hash.blockTokens, candidatesMax: Infinity });
    this.#encoder.header(header);
  }

  async #flush(endsRun = false): Promise<void> {
    const lines = this.#encoder?.lines;
    if (lines === undefined || (lines.length === 0 && !endsRun)) return;
    lines.ascii(this.#check.after(lines.view(), endsRun));
    await this.#segment?.append(lines.taken());
  }

  async #endSegment(endsRun: boolean): Promise<void> {
    const segment = this.#segment;
    if (segment === undefined) return;
    await this.#flush(endsRun);
    await segment.close(false);
    this.bytes += segment.bytes;
    this.#segment = undefined;
  }
}
