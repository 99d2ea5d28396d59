import { join } from "node:path";
import type { Decision } from "#core/decision.ts";
import type { Input } from "#core/input.ts";
import { MICROS_PER_MILLI } from "#core/units.ts";
import { SegmentWriter } from "#trace/segment-writer.ts";
import { segmentName } from "#trace/segment-name.ts";
import { makeFolder } from "./make-folder.ts";
import type { JournalListener } from "../journal.ts";
import { RecordQueue } from "./record-queue.ts";
import { RunLines, type Run } from "./run-lines.ts";

export interface RecorderOptions {
  /** Folder of the segments; made when it is not there. */
  readonly directory: string;
  readonly run: Run;
  /** Bytes of records that may wait, in memory, for the disk. Above it whole records are dropped and counted. */
  readonly bufferBytesMax: number;
  /** Compressed size and age at which a new segment begins. */
  readonly segmentBytesMax: number;
  readonly segmentMillisMax: number;
  /** Longest time that a record waits before it is written. */
  readonly flushMillis: number;
  /** never; segment: as one closes; flush: before a batch counts as written. */
  readonly fsync: "never" | "segment" | "flush";
  readonly compressionLevel: number;
  /** Candidates that a decision is recorded with; its digest covers all. */
  readonly candidatesMax: number;
  /** Pause after a failure of the disk, twice as long after each further one; 1 s when left out. */
  readonly retryMillis?: number;
  /** Told once per failure of the disk, for the log. Must not throw. */
  readonly onFailure: (message: string) => void;
}

/** How the recording stands, for metrics and status pages. */
export interface RecorderStatus {
  /** Records on the disk, as far as the fsync policy goes. */
  readonly recorded: number;
  /** Records that are lost to a full buffer or a failing disk. */
  readonly dropped: number;
  readonly bufferedBytes: number;
  readonly segments: number;
  /** Compressed bytes on the disk. */
  readonly writtenBytes: number;
  /** Time on the event loop spent on making lines. */
  readonly encodeMicros: number;
}

/** Text handed to the disk in one piece. */
interface Batch {
  readonly text: string;
  readonly records: number;
  /** Number of the segment that it begins; undefined when it continues one. */
  readonly segment: number | undefined;
}

/** Share of the event loop that encoding may take in one turn. */
const SLICE_MILLIS_MAX = 0.5;
/** Lines that are this long together go to the disk before the flush interval is over. */
const BATCH_CHARS_MAX = 524_288;
const RETRY_MILLIS_DEFAULT = 1_000;
const RETRY_MILLIS_MAX = 60_000;

/**
 * Writes what the journal sees to trace segments.
 *
 * `accepted` only queues. Lines are made after the events of the same turn of the event loop were served, so that a
 * record's objects die young, and in slices; compression and files are the thread pool's. What does not fit the buffer
 * or the disk is dropped by whole records, and the next line says how many.
 */
export class Recorder implements JournalListener {
  readonly #options: RecorderOptions;
  readonly #queue: RecordQueue;
  readonly #lines: RunLines;
  readonly #batches: Batch[] = [];
  #segment: SegmentWriter | undefined;
  #segmentOpenedMillis = 0;
  #rotate = true;
  #encodeScheduled = false;
  #flushTimer: NodeJS.Timeout | undefined;
  #pump: Promise<void> | undefined;
  #retryMillis: number;
  #suspendedUntilMillis = 0;
  #closed = false;
  #recorded = 0;
  #segments = 0;
  #writtenBytes = 0;
  #encodeMillis = 0;

  /** Makes the folder and opens the first segment; rejects when that cannot be done. */
  static async open(options: RecorderOptions): Promise<Recorder> {
    const recorder = new Recorder(options);
    recorder.#cut();
    await recorder.#writeFirst();
    return recorder;
  }

  private constructor(options: RecorderOptions) {
    this.#options = options;
    this.#retryMillis = this.#retryMillisMin;
    this.#queue = new RecordQueue(options.bufferBytesMax);
    this.#lines = new RunLines(options.run, options.candidatesMax);
  }

  accepted(input: Input, decision: Decision | undefined): void {
    if (this.#closed) return;
    if (this.#suspendedUntilMillis > 0 && performance.now() < this.#suspendedUntilMillis) {
      this.#queue.lost(1);
      return;
    }
    if (!this.#queue.push(input, decision) || this.#encodeScheduled) return;
    this.#encodeScheduled = true;
    setImmediate(this.#encodeSlice);
  }

  status(): RecorderStatus {
    return {
      recorded: this.#recorded,
      dropped: this.#queue.dropped,
      bufferedBytes: this.#queue.bytes,
      segments: this.#segments,
      writtenBytes: this.#writtenBytes,
      encodeMicros: Math.round(this.#encodeMillis * MICROS_PER_MILLI),
    };
  }

  /** Writes what is queued and closes the segment. Later records are ignored. Never rejects. */
  async close(): Promise<void> {
    if (this.#closed) return this.#pump;
    this.#closed = true;
    clearTimeout(this.#flushTimer);
    while (this.#encodeSome()) continue;
    const { at, dropped } = this.#queue.takeDropped();
    if (dropped > 0) this.#queue.held(this.#lines.gap(at, dropped));
    this.#flush();
    await this.#pump;
    await this.#closeSegment();
  }

  readonly #encodeSlice = (): void => {
    this.#encodeScheduled = false;
    if (this.#closed) return;
    const more = this.#encodeSome();
    if (this.#lines.chars >= BATCH_CHARS_MAX) this.#flush();
    else this.#flushTimer ??= setTimeout(() => this.#flush(), this.#options.flushMillis);
    if (!more) return;
    this.#encodeScheduled = true;
    setImmediate(this.#encodeSlice);
  };

  /** Makes lines for one slice's time; true when records are left. */
  #encodeSome(): boolean {
    const start = performance.now();
    let now = start;
    while (now - start < SLICE_MILLIS_MAX) {
      const next = this.#queue.shift();
      if (next === undefined) break;
      if (this.#rotate) this.#cut();
      this.#lines.write(next, this.#queue);
      now = performance.now();
    }
    this.#encodeMillis += now - start;
    return !this.#queue.empty;
  }

  /** Ends the batch at hand; what follows begins a segment. */
  #cut(): void {
    this.#take();
    this.#rotate = false;
    this.#queue.held(this.#lines.beginSegment());
  }

  #flush(): void {
    clearTimeout(this.#flushTimer);
    this.#flushTimer = undefined;
    const age = performance.now() - this.#segmentOpenedMillis;
    if (this.#segment !== undefined && age >= this.#options.segmentMillisMax) this.#rotate = true;
    this.#take();
    this.#pump ??= this.#writeAll().finally(() => (this.#pump = undefined));
  }

  #take(): void {
    const batch = this.#lines.take();
    if (batch !== undefined) this.#batches.push(batch);
  }

  async #writeFirst(): Promise<void> {
    this.#take();
    const batch = this.#batches.shift();
    if (batch !== undefined) await this.#write(batch);
  }

  async #writeAll(): Promise<void> {
    for (let batch = this.#batches.shift(); batch !== undefined; batch = this.#batches.shift()) {
      try {
        await this.#write(batch);
        this.#retryMillis = this.#retryMillisMin;
      } catch (error) {
        await this.#fail(batch, error);
      }
    }
  }

  async #write(batch: Batch): Promise<void> {
    if (batch.segment !== undefined) {
      await this.#closeSegment();
      const { directory, compressionLevel, fsync, run } = this.#options;
      await makeFolder(directory);
      const path = join(directory, segmentName(run.startWallMicros, run.id, batch.segment));
      this.#segment = await SegmentWriter.create(path, { compressionLevel, syncEveryAppend: fsync === "flush" });
      this.#segmentOpenedMillis = performance.now();
      this.#segments++;
    }
    const segment = this.#segment;
    if (segment === undefined) return this.#lose(batch);
    const before = segment.bytes;
    await segment.append(batch.text);
    this.#writtenBytes += segment.bytes - before;
    this.#recorded += batch.records;
    this.#queue.release(batch.text.length);
    if (segment.bytes >= this.#options.segmentBytesMax) this.#rotate = true;
  }

  get #retryMillisMin(): number {
    return this.#options.retryMillis ?? RETRY_MILLIS_DEFAULT;
  }

  /** Gives the segment up and lets the next one wait. Batches that continue it are lost with it. */
  async #fail(batch: Batch, error: unknown): Promise<void> {
    this.#lose(batch);
    await this.#segment?.abandon();
    this.#segment = undefined;
    this.#rotate = true;
    this.#suspendedUntilMillis = performance.now() + this.#retryMillis;
    this.#retryMillis = Math.min(2 * this.#retryMillis, RETRY_MILLIS_MAX);
    this.#options.onFailure(
      `recording stopped for a while: ${error instanceof Error ? error.message : "unknown failure"}`,
    );
  }

  #lose(batch: Batch): void {
    this.#queue.release(batch.text.length);
    this.#queue.lost(batch.records);
  }

  async #closeSegment(): Promise<void> {
    const segment = this.#segment;
    this.#segment = undefined;
    const before = segment?.bytes ?? 0;
    try {
      await segment?.close(this.#options.fsync !== "never");
      this.#writtenBytes += (segment?.bytes ?? 0) - before;
    } catch (error) {
      this.#options.onFailure(
        `a trace segment was not closed well: ${error instanceof Error ? error.message : "unknown failure"}`,
      );
    }
  }
}
