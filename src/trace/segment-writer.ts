import { open, type FileHandle } from "node:fs/promises";
import { type ZstdCompress, constants, createZstdCompress } from "node:zlib";

export interface SegmentOptions {
  /** zstd level, 1 to 19. */
  readonly compressionLevel: number;
  /** Whether every append is forced to the disk before it counts as written. */
  readonly syncEveryAppend: boolean;
  /** Creates the file, which must not be there yet; the file system's own when left out. */
  readonly create?: (path: string) => Promise<SegmentFile>;
}

/** What a segment needs of a file. */
export type SegmentFile = Pick<FileHandle, "appendFile" | "truncate" | "datasync" | "sync" | "close">;

/** What is asked, when and how often, is nobody else's: files and folders of traces are their owner's alone. */
export const TRACE_FILE_MODE = 0o600;
export const TRACE_FOLDER_MODE = 0o700;

/** What a batch becomes fits: each piece is a way to the thread pool and back. */
const CHUNK_BYTES = 262_144;

/**
 * One file of lines in one zstd frame, which is flushed after every append: what was appended before a crash can be
 * read. Compression runs on the thread pool. Not for concurrent use: await each call.
 */
export class SegmentWriter {
  readonly #file: SegmentFile;
  readonly #options: SegmentOptions;
  readonly #zstd: ZstdCompress;
  #compressed: Buffer[] = [];
  #failure: Error | undefined;
  /** Bytes of the appends that came to their end. */
  #wholeBytes = 0;
  /** Compressed bytes in the file. */
  bytes = 0;

  /** Creates the file, which must not be there yet. */
  static async create(path: string, options: SegmentOptions): Promise<SegmentWriter> {
    const { create = (name) => open(name, "wx", TRACE_FILE_MODE) } = options;
    return new SegmentWriter(await create(path), options);
  }

  private constructor(file: SegmentFile, options: SegmentOptions) {
    this.#file = file;
    this.#options = options;
    this.#zstd = createZstdCompress({
      chunkSize: CHUNK_BYTES,
      params: { [constants.ZSTD_c_compressionLevel]: options.compressionLevel, [constants.ZSTD_c_checksumFlag]: 1 },
    });
    this.#zstd.on("data", (chunk: Buffer) => this.#compressed.push(chunk));
    this.#zstd.on("error", (error) => (this.#failure = error));
  }

  /** Lines, each with its newline. Rejects when they could not be written; the segment is then of no further use. */
  async append(lines: Uint8Array): Promise<void> {
    this.#zstd.write(lines);
    await new Promise<void>((resolve) => this.#zstd.flush(() => resolve()));
    await this.#store();
    if (this.#options.syncEveryAppend) await this.#file.datasync();
    this.#wholeBytes = this.bytes;
  }

  /** Ends the frame and closes the file, forced to the disk first if `sync`. */
  async close(sync: boolean): Promise<void> {
    try {
      await new Promise<void>((resolve) => {
        this.#zstd.once("close", resolve);
        this.#zstd.end();
      });
      await this.#store();
      if (sync) await this.#file.sync();
    } finally {
      await this.#file.close();
    }
  }

  /** Closes the file after a failure, without what was appended last; what was appended before can be read. */
  async abandon(): Promise<void> {
    this.#zstd.destroy();
    await this.#file.truncate(this.#wholeBytes).catch(() => {});
    await this.#file.close().catch(() => {});
  }

  async #store(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    const chunks = this.#compressed;
    this.#compressed = [];
    for (const chunk of chunks) {
      await this.#file.appendFile(chunk);
      this.bytes += chunk.length;
    }
  }
}
