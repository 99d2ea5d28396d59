import { closeSync, openSync, readFileSync } from "node:fs";
import type { Server } from "node:http";
import type { Socket } from "node:net";

import { refusal } from "../http/errors.ts";
import type { FaultEvent } from "../log/fault-log.ts";
import { countUp } from "../base/gateway-counters.ts";
import { rawAnswer } from "../http/http-faults.ts";

export interface OpenFilesOptions {
  readonly observe: { fault?(event: FaultEvent): void };
  /** Files that this process may have open; what the system allows where it is left out. */
  readonly filesMax?: number;
  /** Whether answers carry x-gnomon-* headers; they do when left out. */
  readonly sendsOwnHeaders?: boolean;
}

/** Of the files that may be open, a share is kept for connections to engines, scrapes and the trace. */
const KEPT_SHARE = 1 / 8;
const KEPT_MIN = 16;
const KEPT_MAX = 1_024;
const LOOK_MILLIS = 1_000;

/**
 * Watches how many files are open. Where none is left the system closes clients' connections before this process sees
 * them, without a trace; so clients are refused a little before, with an answer, a count and a line in the log. A new
 * file has the lowest number that is free, so that a number shows how many there are.
 */
export class OpenFiles {
  readonly #options: OpenFilesOptions;
  readonly #counts: Record<string, number>;
  readonly #filesMax: number;
  readonly #clientsBelow: number;
  #spentSince: number | undefined;
  #missed = 0;
  #timer: NodeJS.Timeout | undefined;

  /** Counts what was refused or failed, by what it was for: client or engine. */
  constructor(options: OpenFilesOptions, counts: Record<string, number>) {
    this.#options = options;
    this.#counts = counts;
    this.#filesMax = options.filesMax ?? filesAllowed();
    const kept = Math.min(KEPT_MAX, Math.max(KEPT_MIN, Math.floor(this.#filesMax * KEPT_SHARE)));
    this.#clientsBelow = this.#filesMax - kept;
  }

  /** Refuses connections of clients that would take the last files. */
  guard(server: Server): void {
    server.on("connection", (socket: Socket) => {
      if (fileOf(socket) < this.#clientsBelow) return;
      this.spent("client");
      socket.on("error", () => {});
      // Towards a client that speaks TLS there is nothing to say yet.
      if ("setSecureContext" in server) socket.destroy();
      else socket.end(rawAnswer(NO_FILES, this.#options.sendsOwnHeaders ?? true), () => socket.destroy());
    });
  }

  /** A connection to an engine failed, maybe since this process, or the system, has as many files open as it may. */
  met(error: Error): void {
    if ("code" in error && (error.code === "EMFILE" || error.code === "ENFILE")) this.spent("engine");
  }

  /** Something was refused, or failed, since no file was left for it. */
  spent(what: "client" | "engine"): void {
    countUp(this.#counts, what);
    this.#missed++;
    if (this.#spentSince !== undefined) return;
    this.#spentSince = performance.now();
    this.#options.observe.fault?.({
      kind: "files-exhausted",
      detail: `as many files are open as this process may have (${this.#filesMax}), all but those kept for engines`,
      done: "clients that connect get 429 until some are free; raise the limit of open files (ulimit -n)",
    });
    this.#timer = setInterval(() => this.#look(), LOOK_MILLIS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#spentSince = undefined;
  }

  #look(): void {
    if (this.#spentSince === undefined || nextFile() >= this.#clientsBelow) return;
    const millis = Math.round(performance.now() - this.#spentSince);
    const figures = { millis, refusedOrFailed: this.#missed };
    this.#missed = 0;
    this.stop();
    this.#options.observe.fault?.({
      kind: "files-free",
      detail: "files are free again",
      done: "clients are served",
      figures,
    });
  }
}

const NO_FILES = refusal("saturated", "The gateway has as many connections open as it may; try again later.");

/** Number of a socket's file; below every limit where the system has none. */
function fileOf(socket: Socket): number {
  const { _handle: handle } = socket as Socket & { readonly _handle?: { readonly fd?: number } | null };
  return handle?.fd ?? -1;
}

/** Number of the file that would be opened next. */
function nextFile(): number {
  try {
    const file = openSync("/dev/null", "r");
    closeSync(file);
    return file;
  } catch {
    return Infinity;
  }
}

/** Infinity where the system does not say. */
function filesAllowed(): number {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1];
    return soft === undefined ? Infinity : Number(soft);
  } catch {
    return Infinity;
  }
}
