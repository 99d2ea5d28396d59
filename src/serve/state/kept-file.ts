import { randomBytes } from "node:crypto";
import { open, rename, unlink } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * One file that is replaced whole or not at all, whatever ends the process or the machine: written beside it, forced to
 * the disk, renamed. While it is written, only the latest of what is asked for meanwhile waits.
 */
export class KeptFile {
  readonly #path: string;
  #running: Promise<void> | undefined;
  #next: { readonly text: string; readonly done: Promise<void> } | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** Resolves when this text, or a later one, is on the disk. Rejects with the system's error. */
  write(text: string): Promise<void> {
    if (this.#running === undefined) return (this.#running = this.#written(text));
    const before = this.#running;
    if (this.#next !== undefined) {
      // Nobody needs what has not been begun and is out of date.
      this.#next = { text, done: this.#next.done };
      return this.#next.done;
    }
    const done = before
      .catch(() => {})
      .then(() => {
        const { text: latest } = this.#next!;
        this.#next = undefined;
        return (this.#running = this.#written(latest));
      });
    this.#next = { text, done };
    return done;
  }

  async #written(text: string): Promise<void> {
    const beside = `${this.#path}.${randomBytes(4).toString("hex")}`;
    try {
      const file = await open(beside, "wx", 0o600);
      try {
        await file.writeFile(text);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(beside, this.#path);
      const folder = await open(dirname(this.#path), "r");
      try {
        await folder.sync();
      } finally {
        await folder.close();
      }
    } catch (error) {
      await unlink(beside).catch(() => {});
      throw error;
    } finally {
      if (this.#next === undefined) this.#running = undefined;
    }
  }
}
