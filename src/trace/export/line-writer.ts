import { createWriteStream } from "node:fs";
import { TRACE_FILE_MODE } from "../segment-writer.ts";
import { rm } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { PassThrough } from "node:stream";
import { createGzip, createZstdCompress } from "node:zlib";

const BATCH_CHARS = 262_144;

/** Writes text to a new file, compressed when its name ends with .zst or .gz, no faster than the disk takes it. */
export class LineWriter {
  readonly #input = new PassThrough({ highWaterMark: 1_048_576 });
  readonly #done: Promise<void>;
  readonly #path: string;
  #failure: Error | undefined;
  #text = "";

  /** A file that is there already is not written over: `write` or `close` reject with EEXIST. */
  constructor(path: string) {
    this.#path = path;
    const file = createWriteStream(path, { flags: "wx", mode: TRACE_FILE_MODE });
    if (path.endsWith(".zst")) this.#done = pipeline(this.#input, createZstdCompress(), file);
    else if (path.endsWith(".gz")) this.#done = pipeline(this.#input, createGzip(), file);
    else this.#done = pipeline(this.#input, file);
    this.#done.catch((error: Error) => (this.#failure = error));
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
  }

  /** Ends without having written all, and removes the file that it made. */
  async abandon(): Promise<void> {
    this.#input.destroy();
    const ended = await this.#done.then(
      () => undefined,
      (error: NodeJS.ErrnoException) => error,
    );
    // What was there before is not ours.
    if (ended?.code !== "EEXIST") await rm(this.#path, { force: true });
  }

  async #flush(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    const text = this.#text;
    this.#text = "";
    if (text === "" || this.#input.write(text)) return;
    await Promise.race([new Promise((resolve) => this.#input.once("drain", resolve)), this.#done]);
  }
}
