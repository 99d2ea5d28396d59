import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import type { IntakeListener } from "../base/intake.ts";
import { LineMaker } from "./line-maker.ts";
import type { RunHeader } from "./run-lines.ts";

export interface TraceFeedOptions {
  readonly run: RunHeader;
  /** Bytes of records that may be queued here or sent and not yet taken. Above it whole records are dropped. */
  readonly bufferBytesMax: number;
  readonly candidatesMax: number;
  /** Takes lines of a trace; `taken` is to be called for them. Must not throw. */
  readonly send: (lines: Buffer<ArrayBuffer>) => void;
}

/** Lines this long together are sent at once; shorter ones wait for the pause. */
const BATCH_BYTES_MAX = 262_144;
const PAUSE_MILLIS = 100;
/**
 * What is on its way need not be as short as what is kept: a quarter of a segment's blocks are remembered, which are 3 MB
 * here and 4 for who reads them in place of 13 and 17. Beyond it chains are written whole once more.
 */
const BLOCKS_MAX = 262_144;

/**
 * Sends what the intake sees to somebody who may be slow or gone, as the lines of a trace. It never waits: beyond its
 * buffer whole records are dropped, and the next line states how many.
 */
export class TraceFeed implements IntakeListener {
  readonly #options: TraceFeedOptions;
  readonly #maker: LineMaker;
  #stopped = false;

  constructor(options: TraceFeedOptions) {
    this.#options = options;
    this.#maker = new LineMaker({
      ...options,
      checked: false,
      blocksMax: BLOCKS_MAX,
      waitMillis: PAUSE_MILLIS,
      batchBytesMax: BATCH_BYTES_MAX,
      ready: () => this.#send(),
    });
    this.restart();
  }

  get dropped(): number {
    return this.#maker.queue.dropped;
  }

  /** Bytes queued or on their way. */
  get bufferedBytes(): number {
    return this.#maker.queue.bytes;
  }

  accepted(input: Input, decision: Decision | undefined): void {
    if (!this.#stopped) this.#maker.push(input, decision);
  }

  /** The receiver has worked through so many bytes of lines. */
  taken(bytes: number): void {
    this.#maker.queue.release(bytes);
  }

  /** A new receiver: it gets a header first. */
  restart(): void {
    this.#maker.queue.held(this.#maker.lines.beginSegment());
    this.#send();
  }

  stop(): void {
    this.#stopped = true;
    this.#maker.stop();
  }

  #send(): void {
    const batch = this.#maker.lines.take();
    if (batch !== undefined) this.#options.send(batch.lines);
  }
}
