import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { SegmentFile } from "#trace/segment-writer.ts";
import type { IntakeListener } from "../base/intake.ts";
import { LineMaker } from "./line-maker.ts";
import type { RecordQueue } from "./record-queue.ts";
import type { Batch, RunHeader, RunLines } from "./run-lines.ts";
import { SegmentSink } from "./segment-sink.ts";

export interface RecorderOptions {
  /** Folder of the segments; made when it is not there. */
  readonly directory: string;
  readonly run: RunHeader;
  /** Bytes of records that may wait, in memory, for the disk. Above it whole records are dropped and counted. */
  readonly bufferBytesMax: number;
  /** Compressed size and age at which a new segment begins. */
  readonly segmentBytesMax: number;
  readonly segmentMillisMax: number;
  /** Compressed bytes of all segments of the folder; beyond it whole ones are removed, the oldest first. */
  readonly bytesMax: number;
  /** Hours since its last record after which a segment is removed; undefined keeps them. */
  readonly ageMaxHours?: number | undefined;
  /** Longest time that a record waits before it is written. */
  readonly flushMillis: number;
  /** never; segment: as one closes; flush: before a batch counts as written. */
  readonly fsync: "never" | "segment" | "flush";
  readonly compressionLevel: number;
  /** Candidates that a decision is recorded with; its digest covers all. */
  readonly candidatesMax: number;
  /** Pause after a failure of the disk, twice as long after each further one; 1 s when left out. */
  readonly retryMillis?: number;
  /** Creates a segment's file; the file system's own when left out. */
  readonly createFile?: (path: string) => Promise<SegmentFile>;
  /** The disk began to fail: called once until it recovers. Must not throw. */
  readonly onFailure: (message: string) => void;
  /** The disk takes records again; how many were lost since it failed, and for how long. Must not throw. */
  readonly onRecovery?: (lost: { readonly records: number; readonly millis: number }) => void;
}

/** How the recording stands, for metrics and status pages. */
export interface RecorderStatus {
  /** Records on the disk, as far as the fsync policy goes. */
  readonly recorded: number;
  /** Records that are lost to a full buffer or a failing disk. */
  readonly dropped: number;
  readonly bufferedBytes: number;
  readonly segments: number;
  /** Compressed bytes written. */
  readonly writtenBytes: number;
  /** Segments that were removed to stay within the bounds, and their bytes. */
  readonly removedSegments: number;
  readonly removedBytes: number;
  /** Time on the event loop spent on making lines. */
  readonly encodeMicros: number;
}

/** Lines that are this long together go to the disk before the flush interval is over. */
const BATCH_BYTES_MAX = 524_288;
const RETRY_MILLIS_DEFAULT = 1_000;
const RETRY_MILLIS_MAX = 60_000;
const MILLIS_PER_HOUR = 3_600_000;

/**
 * Writes what the intake sees to trace segments.
 *
 * `accepted` only queues; lines are made soon after, and compression and files are the thread pool's. What does not fit
 * the buffer or the disk is dropped by whole records, and the next line states how many. A disk that fails, as a full
 * one does, is left alone for pauses that grow to a minute; what comes meanwhile is counted and dropped at once.
 */
export class Recorder implements IntakeListener {
  readonly #options: RecorderOptions;
  readonly #maker: LineMaker;
  readonly #queue: RecordQueue;
  readonly #lines: RunLines;
  readonly #batches: Batch[] = [];
  readonly #sink: SegmentSink;
  #rotate = true;
  #pump: Promise<void> | undefined;
  #retryMillis: number;
  #suspendedUntilMillis = 0;
  #lastFailureMillis = Number.NEGATIVE_INFINITY;
  /** Since when the disk fails, and the records dropped by then; undefined where it does not. */
  #failing: { readonly sinceMillis: number; readonly dropped: number } | undefined;
  #closed = false;
  #recorded = 0;

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
    const { bytesMax, ageMaxHours, flushMillis } = options;
    this.#maker = new LineMaker({
      ...options,
      checked: true,
      waitMillis: flushMillis,
      batchBytesMax: BATCH_BYTES_MAX,
      begins: () => this.#beginLines(),
      ready: () => this.#flush(),
    });
    this.#queue = this.#maker.queue;
    this.#lines = this.#maker.lines;
    const ageMillisMax = ageMaxHours === undefined ? undefined : ageMaxHours * MILLIS_PER_HOUR;
    this.#sink = new SegmentSink({ ...options, retention: { bytesMax, ageMillisMax } });
  }

  accepted(input: Input, decision: Decision | undefined): void {
    if (this.#closed) return;
    if (this.#suspended) {
      this.#queue.lost(1);
      return;
    }
    this.#maker.push(input, decision);
  }

  status(): RecorderStatus {
    return {
      recorded: this.#recorded,
      dropped: this.#queue.dropped,
      bufferedBytes: this.#queue.bytes,
      segments: this.#sink.segments,
      writtenBytes: this.#sink.writtenBytes,
      removedSegments: this.#sink.removed.segments,
      removedBytes: this.#sink.removed.bytes,
      encodeMicros: Math.round(this.#maker.millis * MICROS_PER_MILLI),
    };
  }

  /** Writes what is queued and closes the segment. Later records are ignored. Never rejects. */
  async close(): Promise<void> {
    if (this.#closed) return this.#pump;
    this.#closed = true;
    this.#maker.stop();
    while (this.#maker.makeSome()) continue;
    const { at, dropped } = this.#queue.takeDropped();
    if (dropped > 0) this.#queue.held(this.#lines.gap(at, dropped));
    this.#take(true);
    this.#flush();
    await this.#pump;
    await this.#closeSegment();
  }

  #beginLines(): void {
    if (this.#suspended) this.#queue.loseAll();
    else if (this.#rotate) this.#cut();
  }

  /** Ends the batch at hand; what follows begins a segment. */
  #cut(): void {
    this.#take();
    this.#rotate = false;
    this.#queue.held(this.#lines.beginSegment());
  }

  #flush(): void {
    if (this.#sink.open && this.#sink.ageMillis >= this.#options.segmentMillisMax) this.#rotate = true;
    this.#take();
    this.#pump ??= this.#writeAll().finally(() => (this.#pump = undefined));
  }

  #take(endsRun = false): void {
    const batch = this.#lines.take(endsRun);
    if (batch === undefined) return;
    this.#queue.held(batch.checkBytes);
    this.#batches.push(batch);
  }

  async #writeFirst(): Promise<void> {
    this.#take();
    const batch = this.#batches.shift();
    if (batch === undefined) return;
    try {
      await this.#write(batch);
    } catch (error) {
      await this.#sink.abandon();
      throw error;
    }
  }

  async #writeAll(): Promise<void> {
    for (let batch = this.#batches.shift(); batch !== undefined; batch = this.#batches.shift()) {
      try {
        await this.#write(batch);
      } catch (error) {
        await this.#fail(batch, error);
      }
    }
  }

  async #write(batch: Batch): Promise<void> {
    if (batch.segment !== undefined) await this.#closeSegment();
    else if (!this.#sink.open) return this.#lose(batch);
    await this.#sink.write(batch);
    this.#recorded += batch.records;
    this.#queue.release(batch.lines.length);
    if (this.#sink.bytes >= this.#options.segmentBytesMax) this.#rotate = true;
    if (batch.records > 0) this.#recovered();
  }

  get #suspended(): boolean {
    return this.#suspendedUntilMillis > 0 && performance.now() < this.#suspendedUntilMillis;
  }

  get #retryMillisMin(): number {
    return this.#options.retryMillis ?? RETRY_MILLIS_DEFAULT;
  }

  /** Gives the segment up, with all that would have followed in it, and lets the next one wait. */
  async #fail(batch: Batch, error: unknown): Promise<void> {
    const now = performance.now();
    this.#failing ??= this.#began(now, error);
    this.#take();
    for (const lost of [batch, ...this.#batches.splice(0)]) this.#lose(lost);
    this.#lines.continueAfter(this.#sink.lastKept);
    this.#rotate = true;
    // A disk with little room takes a few records now and then; only a long time without a failure is health.
    const quiet = now - this.#lastFailureMillis > 2 * RETRY_MILLIS_MAX;
    this.#retryMillis = quiet ? this.#retryMillisMin : Math.min(2 * this.#retryMillis, RETRY_MILLIS_MAX);
    this.#lastFailureMillis = now;
    this.#suspendedUntilMillis = now + this.#retryMillis;
    await this.#sink.abandon();
  }

  #began(now: number, error: unknown): { sinceMillis: number; dropped: number } {
    this.#options.onFailure(
      `recording stopped, and records are lost until the disk takes them again: ${messageOf(error)}`,
    );
    return { sinceMillis: now, dropped: this.#queue.dropped };
  }

  #recovered(): void {
    const failed = this.#failing;
    if (failed === undefined) return;
    this.#failing = undefined;
    const millis = Math.round(performance.now() - failed.sinceMillis);
    this.#options.onRecovery?.({ records: this.#queue.dropped - failed.dropped, millis });
  }

  #lose(batch: Batch): void {
    this.#queue.release(batch.lines.length);
    this.#queue.uncounted(batch.gapRecords);
    this.#queue.lost(batch.records);
  }

  async #closeSegment(): Promise<void> {
    try {
      await this.#sink.close();
    } catch (error) {
      this.#options.onFailure(`a trace segment was not closed well: ${messageOf(error)}`);
    }
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : "unknown failure";
}
