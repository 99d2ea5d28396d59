import type { Socket } from "node:net";

import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";

import { nowMicros } from "./clock.ts";

/** What Node reads a connection with; none where it is closed. */
interface ReadHandle {
  /** What Node wants: pausing and resuming set it. */
  readonly reading: boolean;
  readStart(): void;
  readStop(): void;
}
/** A connection, as far as its reads are put off. */
export type LongRead = Pick<Socket, "destroyed"> & { readonly _handle?: ReadHandle | null };

/** Fewer bytes than this are no long read: all that a stream's events and usual requests bring. */
export const LONG_READ_BYTES = 8_192;

/** Long reads of one pass of the event loop, with the work on them. */
const PASS_MICROS = 3 * MICROS_PER_MILLI;
const AT_ONCE_MAX = 64;

/**
 * What long reads may take of a pass of the event loop. Node reads up to 2 MiB from each connection that has as much, one
 * after another, and whatever is done with them is done in the same pass: a hundred engines' large answers, or clients'
 * bodies, would keep all others waiting for 100 ms and more. So once a pass has spent its time, the connections that bring
 * much are not read from any more; in the next passes they go on in their order, as many at once as there is time for.
 */
export class LongReads {
  readonly #now: () => Micros;
  /** Connections that brought much in this pass; and those that did in the one before, or go on in this. */
  #bringing = new Set<LongRead>();
  #brought = new Set<LongRead>();
  /** Those that were stopped, the first first. */
  readonly #waiting = new Set<LongRead>();
  /** Let go on in one pass: fewer after one that had too little time. */
  #atOnce = 1;
  /** Of the pass's first long read; undefined before. */
  #beganAt: Micros | undefined;
  #isSpent = false;
  /** The pass is to be ended. */
  #passes = false;

  constructor(now: () => Micros = nowMicros) {
    this.#now = now;
  }

  /** So much that it is a long read came from a connection, and is worked on next. */
  came(socket: LongRead): void {
    if (!this.#passes) setImmediate(this.#end);
    this.#passes = true;
    this.#bringing.add(socket);
    this.#beganAt ??= this.#now();
    if (this.#isSpent) this.#stop(socket);
    else if (this.#now() - this.#beganAt >= PASS_MICROS) this.#spent();
  }

  #spent(): void {
    this.#isSpent = true;
    for (const socket of this.#bringing) this.#stop(socket);
    for (const socket of this.#brought) this.#stop(socket);
  }

  /** Node goes on believing that it reads: whoever pauses and resumes the connection meanwhile finds it as it was left. */
  #stop(socket: LongRead): void {
    if (!isRead(socket)) return;
    socket._handle.readStop();
    this.#waiting.add(socket);
  }

  readonly #end = (): void => {
    this.#atOnce = this.#isSpent ? Math.max(1, this.#atOnce >> 1) : Math.min(AT_ONCE_MAX, 2 * this.#atOnce);
    this.#isSpent = false;
    this.#beganAt = undefined;
    [this.#brought, this.#bringing] = [this.#bringing, this.#brought];
    this.#bringing.clear();
    let left = this.#atOnce;
    for (const socket of this.#waiting) {
      if (left === 0) break;
      this.#waiting.delete(socket);
      if (!isRead(socket)) continue;
      socket._handle.readStart();
      this.#brought.add(socket);
      left--;
    }
    this.#passes = this.#waiting.size > 0 || this.#brought.size > 0;
    if (this.#passes) setImmediate(this.#end);
  };
}

/** Somebody else may have paused it, who lets it go on. */
function isRead(socket: LongRead): socket is LongRead & { readonly _handle: ReadHandle } {
  return !socket.destroyed && socket._handle?.reading === true;
}

/** Of all connections of the process. */
export const LONG_READS = new LongReads();
