import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import type { TapListener } from "../base/router-tap.ts";
import { RecordQueue } from "./record-queue.ts";
import { RunLines, type RunHeader } from "./run-lines.ts";

export interface TraceFeedOptions {
  readonly run: RunHeader;
  /** Bytes of records that may be queued here or sent and not yet taken. Above it whole records are dropped. */
  readonly bufferBytesMax: number;
  readonly candidatesMax: number;
  /** Takes lines of a trace; `taken` is to be called for them. Must not throw. */
  readonly send: (text: string) => void;
}

/** Share of the event loop that one turn may take. */
const SLICE_MILLIS_MAX = 0.5;
/** Lines this long together are sent at once; shorter ones wait for the pause. */
const BATCH_CHARS_MAX = 262_144;
const PAUSE_MILLIS = 100;

/**
 * Sends what the tap sees to somebody who may be slow or gone, as the lines of a trace. It never waits: beyond its
 * buffer whole records are dropped, and the next line states how many.
 */
export class TraceFeed implements TapListener {
  readonly #options: TraceFeedOptions;
  readonly #queue: RecordQueue;
  readonly #lines: RunLines;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: TraceFeedOptions) {
    this.#options = options;
    this.#queue = new RecordQueue(options.bufferBytesMax);
    this.#lines = new RunLines(options.run, options.candidatesMax, false);
    this.restart();
  }

  get dropped(): number {
    return this.#queue.dropped;
  }

  /** Bytes queued or on their way. */
  get bufferedBytes(): number {
    return this.#queue.bytes;
  }

  accepted(input: Input, decision: Decision | undefined): void {
    if (this.#stopped || !this.#queue.push(input, decision)) return;
    this.#timer ??= setTimeout(this.#slice, PAUSE_MILLIS).unref();
  }

  /** The receiver has worked through text of this length. */
  taken(chars: number): void {
    this.#queue.release(chars);
  }

  /** A new receiver: it gets a header first. */
  restart(): void {
    this.#queue.held(this.#lines.beginSegment());
    this.#send();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  readonly #slice = (): void => {
    const until = performance.now() + SLICE_MILLIS_MAX;
    let record = this.#queue.shift();
    for (; record !== undefined; record = performance.now() < until ? this.#queue.shift() : undefined) {
      this.#lines.write(record, this.#queue);
      if (this.#lines.chars >= BATCH_CHARS_MAX) this.#send();
    }
    this.#timer = undefined;
    if (this.#queue.empty) this.#send();
    else setImmediate(this.#slice);
  };

  #send(): void {
    const batch = this.#lines.take();
    if (batch !== undefined) this.#options.send(batch.text);
  }
}
