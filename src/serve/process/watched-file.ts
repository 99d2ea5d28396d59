import { readFile } from "node:fs/promises";

export interface WatchedFileOptions {
  readonly file: string;
  /** Time between two looks. */
  readonly watchMillis: number;
  /** What the file held when it was read first. */
  readonly text: string;
  /** It holds something else now. It must not throw. */
  readonly changed: (text: string) => void;
  /** It cannot be read now, once for each reason in a row. It must not throw. */
  readonly unreadable: (reason: string) => void;
  /** It can be read again. It must not throw. */
  readonly readable?: () => void;
}

/**
 * A file that is looked at now and then: a rename, a swapped link and a network drive all look alike then. A change counts
 * once two looks in a row see the same, so that a file which is being written is not read half.
 */
export class WatchedFile {
  readonly #options: WatchedFileOptions;
  #timer: NodeJS.Timeout | undefined;
  #look: Promise<void> = Promise.resolve();
  #isStopped = false;
  #known: string;
  #seen: string;
  #reason = "";

  constructor(options: WatchedFileOptions) {
    this.#options = options;
    this.#known = options.text;
    this.#seen = options.text;
  }

  start(): void {
    if (this.#isStopped || this.#options.watchMillis === 0) return;
    this.#timer = setTimeout(() => {
      this.#look = this.#looked().finally(() => this.start());
    }, this.#options.watchMillis).unref();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#look;
  }

  async #looked(): Promise<void> {
    const { file, changed, unreadable } = this.#options;
    let text: string;
    try {
      text = await readFile(file, "utf8");
    } catch (error) {
      const reason = (error as NodeJS.ErrnoException).code ?? "unreadable";
      if (reason !== this.#reason && !this.#isStopped) unreadable(reason);
      this.#reason = reason;
      return;
    }
    if (this.#reason !== "" && !this.#isStopped) this.#options.readable?.();
    this.#reason = "";
    const isSettled = text === this.#seen;
    this.#seen = text;
    if (this.#isStopped || !isSettled || text === this.#known) return;
    this.#known = text;
    changed(text);
  }
}
