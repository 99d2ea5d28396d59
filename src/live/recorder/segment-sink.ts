import { stat, unlink, mkdir } from "node:fs/promises";
import { join, dirname, resolve } from "node:path";
import { segmentName } from "#trace/segment-name.ts";
import { type SegmentFile, SegmentWriter, TRACE_FOLDER_MODE } from "#trace/segment-writer.ts";
import type { Batch, Kept } from "./run-lines.ts";
import { type RetentionLimits, SegmentRetention } from "./segment-retention.ts";

export interface SegmentSinkOptions {
  /** Folder of the segments; made when it is not there. */
  readonly directory: string;
  readonly run: { readonly id: string; readonly startWallMicros: number };
  /** never; segment: as one closes; flush: before a batch counts as written. */
  readonly fsync: "never" | "segment" | "flush";
  readonly compressionLevel: number;
  readonly retention: RetentionLimits;
  /** Creates a segment's file; the file system's own when left out. */
  readonly createFile?: (path: string) => Promise<SegmentFile>;
}

/** The segments of one run on the disk, one open at a time. Not for concurrent use: await each call. */
export class SegmentSink {
  readonly #options: SegmentSinkOptions;
  readonly #retention: SegmentRetention;
  #segment: SegmentWriter | undefined;
  #path = "";
  /** An abandoned file that could not be removed; its number is used again. */
  #left = "";
  #number = -1;
  #records = 0;
  /** Checksums up to what was written, and up to the end of the segment before. */
  #crc32 = 0;
  #crcBefore = 0;
  #openedMillis = 0;
  /** Segments with records, or open. */
  segments = 0;
  /** Compressed bytes on the disk, as they were written. */
  writtenBytes = 0;

  constructor(options: SegmentSinkOptions) {
    this.#options = options;
    this.#retention = new SegmentRetention(options.directory, options.retention);
  }

  get open(): boolean {
    return this.#segment !== undefined;
  }

  get bytes(): number {
    return this.#segment?.bytes ?? 0;
  }

  get ageMillis(): number {
    return this.open ? performance.now() - this.#openedMillis : 0;
  }

  /** The last segment that stays if the open one is abandoned; -1 where there is none. */
  get lastKept(): Kept {
    const isLost = this.open && this.#records === 0;
    return isLost
      ? { segment: this.#number - 1, crc32: this.#crcBefore }
      : { segment: this.#number, crc32: this.#crc32 };
  }

  get removed(): { readonly segments: number; readonly bytes: number } {
    return { segments: this.#retention.removed, bytes: this.#retention.removedBytes };
  }

  /** Writes to the open segment, or to the one that the batch begins. Rejects when that cannot be done. */
  async write(batch: Batch): Promise<void> {
    if (batch.segment !== undefined) await this.#begin(batch.segment);
    const segment = this.#segment;
    if (segment === undefined) throw new Error("no segment is open");
    // A file that was removed or renamed takes all that is written to it, and nobody would find it.
    if (batch.segment === undefined) await stat(this.#path);
    const before = segment.bytes;
    await segment.append(batch.lines);
    this.writtenBytes += segment.bytes - before;
    this.#records += batch.records;
    this.#crc32 = batch.crc32;
    await this.#retention.enforce(segment.bytes);
  }

  /** Ends the open segment. */
  async close(): Promise<void> {
    const segment = this.#segment;
    this.#segment = undefined;
    const before = segment?.bytes ?? 0;
    await segment?.close(this.#options.fsync !== "never");
    this.writtenBytes += (segment?.bytes ?? 0) - before;
  }

  /** Gives the open segment up after a failure. It stays where records are in it. Never rejects. */
  async abandon(): Promise<void> {
    const segment = this.#segment;
    if (segment === undefined) return;
    const kept = this.#records > 0;
    const last = this.lastKept;
    this.#number = last.segment;
    this.#crc32 = last.crc32;
    this.#segment = undefined;
    await segment.abandon();
    if (kept) return;
    this.segments--;
    await unlink(this.#path).catch(() => (this.#left = this.#path));
  }

  async #begin(number: number): Promise<void> {
    const { directory, compressionLevel, fsync, run, createFile } = this.#options;
    await makeFolder(directory);
    const path = join(directory, segmentName(run.startWallMicros, run.id, number));
    if (path === this.#left) await unlink(path);
    this.#left = "";
    const options = { compressionLevel, syncEveryAppend: fsync === "flush" };
    this.#segment = await SegmentWriter.create(
      path,
      createFile === undefined ? options : { ...options, create: createFile },
    );
    this.#path = path;
    this.#number = number;
    this.#crcBefore = this.#crc32;
    this.#records = 0;
    this.#openedMillis = performance.now();
    this.segments++;
    await this.#retention.scan(path);
  }
}

/**
 * Makes a folder of traces and those above it that are missing, their owner's alone; rejects with the system's error. Node's own recursive mkdir never
 * comes back where the system reports of a folder under an existing one that there is no such file, as /proc does.
 */
async function makeFolder(path: string): Promise<void> {
  const missing: string[] = [];
  for (let folder = resolve(path); !(await exists(folder)); folder = dirname(folder)) missing.push(folder);
  for (const folder of missing.toReversed()) await mkdir(folder, TRACE_FOLDER_MODE).catch(ignoreExisting);
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** Somebody else may make it at the same time. */
function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== "EEXIST") throw error;
}
