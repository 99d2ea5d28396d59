import { createWriteStream } from "node:fs";
import { TRACE_FILE_MODE } from "../segment-writer.ts";
import { link, rename, rm } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { PassThrough } from "node:stream";
import { createGzip, createZstdCompress } from "node:zlib";

/** Of a file system where a file has one name. */
const LINKLESS: ReadonlySet<string | undefined> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);
const BATCH_CHARS = 262_144;

/**
 * Writes text to a new file, compressed when its name ends with .zst or .gz, no faster than the disk takes it. It has its
 * name once it is whole, so that one that was interrupted is taken for no other.
 */
export class LineWriter {
  readonly #input = new PassThrough({ highWaterMark: 1_048_576 });
  readonly #done: Promise<void>;
  readonly #path: string;
  readonly #part: string;
  #failure: Error | undefined;
  #text = "";

  /** A file that is there already is not written over: `close` rejects with EEXIST. */
  constructor(path: string) {
    this.#path = path;
    this.#part = `${path}.${process.pid}.part`;
    const file = createWriteStream(this.#part, { flags: "w", mode: TRACE_FILE_MODE });
    const written = path.endsWith(".zst")
      ? pipeline(this.#input, createZstdCompress(), file)
      : path.endsWith(".gz")
        ? pipeline(this.#input, createGzip(), file)
        : pipeline(this.#input, file);
    this.#done = written.catch((error: Error) => {
      // Its own name is what was asked for.
      error.message = error.message.replace(this.#part, path);
      this.#failure = error;
      throw error;
    });
    this.#done.catch(() => undefined);
  }

  /** Text as it is, line ends included. */
  async write(text: string): Promise<void> {
    this.#text += text;
    if (this.#text.length >= BATCH_CHARS) await this.#flush();
  }

  async close(): Promise<void> {
    await this.#flush();
    this.#input.end();
    await this.#done;
    try {
      // Unlike a rename it replaces nothing.
      await link(this.#part, this.#path);
    } catch (error) {
      if (!LINKLESS.has((error as NodeJS.ErrnoException).code)) throw error;
      await rename(this.#part, this.#path);
    }
    await rm(this.#part, { force: true });
  }

  /** Ends without having written all, and removes the file that it made. */
  async abandon(): Promise<void> {
    this.#input.destroy();
    await this.#done.catch(() => undefined);
    await rm(this.#part, { force: true });
  }

  async #flush(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    const text = this.#text;
    this.#text = "";
    if (text === "" || this.#input.write(text)) return;
    await Promise.race([new Promise((resolve) => this.#input.once("drain", resolve)), this.#done]);
  }
}
