import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import { RecordQueue } from "./record-queue.ts";
import { type RunHeader, RunLines } from "./run-lines.ts";

export interface LineMakerOptions {
  readonly run: RunHeader;
  /** Whether what is taken ends with its checksum. */
  readonly checked: boolean;
  readonly candidatesMax: number;
  /** Blocks that lines may refer to; TraceEncoder's own bound when left out. */
  readonly blocksMax?: number;
  /** Bytes of records and lines that may wait. Above it whole records are dropped and counted. */
  readonly bufferBytesMax: number;
  /** Longest time that a record waits before its line is handed on. */
  readonly waitMillis: number;
  /** Lines that are this long together are handed on before that. */
  readonly batchBytesMax: number;
  /** Called before lines are made. */
  readonly begins?: () => void;
  /** Lines are to be taken now. */
  readonly ready: () => void;
}

/** Share of the event loop that one turn may take. */
const SLICE_MILLIS_MAX = 0.5;
/** Records between two looks at the clock. */
const RECORDS_PER_LOOK = 8;
/** Of so many records lines are made at once, of fewer when their time is over. */
const RECORDS_AT_ONCE = 64;

/**
 * Makes lines of records: of many at once, since the code for one alone is in no cache of the processor (three times the
 * time, at 300 requests a second), but of no more than let their objects die young, and in slices.
 */
export class LineMaker {
  readonly queue: RecordQueue;
  readonly lines: RunLines;
  readonly #options: LineMakerOptions;
  #isScheduled = false;
  /** Since the first record or line that waits. */
  #timer: NodeJS.Timeout | undefined;
  #isDue = false;
  #isStopped = false;
  /** Time on the event loop. */
  millis = 0;

  constructor(options: LineMakerOptions) {
    this.#options = options;
    this.queue = new RecordQueue(options.bufferBytesMax);
    this.lines = new RunLines(options);
  }

  push(input: Input, decision: Decision | undefined): void {
    if (!this.queue.push(input, decision)) return;
    if (this.queue.length >= RECORDS_AT_ONCE) this.#makeSoon();
    else this.#makeInTime();
  }

  /** Makes lines for one slice's time; true when records are left. */
  makeSome(): boolean {
    const { queue, lines } = this;
    if (queue.empty) return false;
    this.#options.begins?.();
    const start = performance.now();
    let millis = 0;
    while (millis < SLICE_MILLIS_MAX && !queue.empty) {
      for (let i = 0; i < RECORDS_PER_LOOK && !queue.empty; i++) lines.write(queue.shift()!, queue);
      millis = performance.now() - start;
    }
    this.millis += millis;
    return !queue.empty;
  }

  /** What is there is taken: nothing waits any more. */
  taken(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#isDue = false;
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  #makeSoon(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#slice);
  }

  #makeInTime(): void {
    this.#timer ??= setTimeout(() => {
      this.#isDue = true;
      this.#slice();
    }, this.#options.waitMillis);
  }

  readonly #slice = (): void => {
    this.#isScheduled = false;
    if (this.#isStopped) return;
    const more = this.makeSome();
    if (this.lines.bytes >= this.#options.batchBytesMax || (this.#isDue && !more)) {
      this.taken();
      this.#options.ready();
    }
    if (more) this.#makeSoon();
    else if (this.lines.bytes > 0) this.#makeInTime();
  };
}
