import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import type { Micros } from "#core/base/units.ts";

export interface QueuedRecord {
  readonly input: Input;
  readonly decision: Decision | undefined;
  /** Records that were dropped between the one before and this one. */
  readonly droppedBefore: number;
  /** What it takes in memory, roughly. */
  readonly bytes: number;
}

/** Bytes of a record's objects without its arrays, roughly. */
const RECORD_BYTES = 512;
/** One of the news that a peer reports. */
const NEWS_BYTES = 192;

/**
 * Records on their way to a recorder, bounded by bytes. The bound covers lines too that were made of them and are not on
 * the disk yet: `held` adds it, `release` takes it off.
 */
export class RecordQueue {
  readonly #bytesMax: number;
  #items: QueuedRecord[] = [];
  #next = 0;
  #bytes = 0;
  #dropped = 0;
  #droppedSince = 0;
  #lastAt: Micros = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get dropped(): number {
    return this.#dropped;
  }

  /** Records that wait. */
  get length(): number {
    return this.#items.length - this.#next;
  }

  get empty(): boolean {
    return this.length === 0;
  }

  /** False when there was no room and the record was dropped. */
  push(input: Input, decision: Decision | undefined): boolean {
    const bytes = recordBytes(input, decision);
    this.#lastAt = input.at;
    if (this.#bytes + bytes > this.#bytesMax) {
      this.lost(1);
      return false;
    }
    this.#bytes += bytes;
    this.#items.push({ input, decision, droppedBefore: this.#droppedSince, bytes });
    this.#droppedSince = 0;
    return true;
  }

  shift(): QueuedRecord | undefined {
    const item = this.#items[this.#next];
    if (item === undefined) return undefined;
    this.#next++;
    this.#bytes -= item.bytes;
    if (this.#next === this.#items.length) {
      this.#items = [];
      this.#next = 0;
    }
    return item;
  }

  /** Records dropped since the last one that was queued, reported once; and the time of the last record seen. */
  takeDropped(): { at: Micros; dropped: number } {
    const dropped = this.#droppedSince;
    this.#droppedSince = 0;
    return { at: this.#lastAt, dropped };
  }

  /** Counts records that are dropped without having been queued, or after. */
  lost(records: number): void {
    this.#dropped += records;
    this.#droppedSince += records;
  }

  /** Drops what is queued. */
  loseAll(): void {
    for (let item = this.shift(); item !== undefined; item = this.shift()) {
      this.uncounted(item.droppedBefore);
      this.lost(1);
    }
  }

  /** Records that were counted as dropped, in a line that is lost itself: the next line counts them again. */
  uncounted(records: number): void {
    this.#droppedSince += records;
  }

  held(bytes: number): void {
    this.#bytes += bytes;
  }

  release(bytes: number): void {
    this.#bytes -= bytes;
  }
}

/** What a record takes in memory, roughly. */
export function recordBytes(input: Input, decision: Decision | undefined): number {
  let bytes = RECORD_BYTES;
  if (input.kind === "request-arrived") bytes += input.request.blocks.hashes.byteLength;
  if (input.kind === "request-finished" || input.kind === "answer-known") bytes += input.answerHashes?.byteLength ?? 0;
  if (input.kind === "blocks-stored" || input.kind === "blocks-removed") bytes += input.hashes.byteLength;
  if (input.kind === "peer-reported") {
    for (const news of input.news) bytes += NEWS_BYTES + ("blocks" in news ? news.blocks.hashes.byteLength : 0);
  }
  if (decision !== undefined) bytes += decision.breakdown.values.byteLength + 10 * decision.breakdown.totals.byteLength;
  return bytes;
}
