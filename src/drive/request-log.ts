import { closeSync, openSync, writeSync } from "node:fs";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import type { Sample } from "./sample-log.ts";

const FLUSH_CHARS = 65_536;

/** A JSON line a finished request; without prompts. Times are microseconds from the start of the run. */
export class RequestLog {
  readonly #file: number;
  #pending = "";

  /** Throws when the file cannot be written. */
  constructor(path: string) {
    this.#file = openSync(path, "w", 0o600);
  }

  write(request: WorkloadRequest, sample: Sample): void {
    const { index, session, turn } = request;
    // The message may quote the prompt.
    const figures = { index, session, turn, ...sample, errorMessage: undefined };
    this.#pending += `${JSON.stringify(figures)}\n`;
    if (this.#pending.length >= FLUSH_CHARS) this.#flush();
  }

  close(): void {
    this.#flush();
    closeSync(this.#file);
  }

  #flush(): void {
    writeSync(this.#file, this.#pending);
    this.#pending = "";
  }
}
