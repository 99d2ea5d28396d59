import type { Micros } from "#core/base/units.ts";
import type { TraceGap, TraceHeader, TraceItem, TraceRecord } from "../codec/record.ts";
import { derivedHeader } from "./derived-header.ts";
import { FleetState } from "./fleet-state.ts";
import { KeptRequests } from "./kept-requests.ts";
import type { Tally } from "./tally.ts";

/** Requests whose arrival lies in [fromMicros, toMicros) and whose ordinal lies in [fromRequest, toRequest). */
export interface SliceRange {
  /** From the start of the trace's first run. */
  readonly fromMicros: Micros;
  readonly toMicros: Micros;
  /** Counted from 0 over the whole trace. */
  readonly fromRequest: number;
  readonly toRequest: number;
}

/**
 * A part of a recorded trace: all inputs of the requests that arrived in the range, and the fleet's inputs from its
 * beginning to its end. Times stay as they were. A run that is taken from its beginning replays; of another the header
 * states that it does not, and holds the fleet as it stood. After the end only requests under way go on, and a gap stands
 * before a decision that was made with knowledge of what is left out.
 */
export async function* sliceRecorded(
  items: AsyncIterable<TraceItem>,
  range: SliceRange,
  left: Tally,
): AsyncGenerator<TraceItem> {
  let originMicros: number | undefined;
  let requestsBefore = 0;
  let slice: RunSlice | undefined;
  for await (const item of items) {
    if (item.kind === "run") {
      originMicros ??= item.header.startWallMicros;
      requestsBefore += slice?.requestsSeen ?? 0;
      slice = new RunSlice(item.header, item.header.startWallMicros - originMicros, requestsBefore, range, left);
    } else if (slice !== undefined) yield* item.kind === "gap" ? slice.gap(item) : slice.take(item);
  }
}

class RunSlice {
  readonly #fleet: FleetState;
  readonly #kept: KeptRequests;
  readonly #range: SliceRange;
  readonly #offsetMicros: Micros;
  readonly #left: Tally;
  /** Whether the range begins before this run does. */
  readonly #fromStart: boolean;
  #state: "before" | "inside" | "after" = "before";
  #at: Micros = 0;
  /** Records that were left out since the end of the range, or since the last gap that counted them. */
  #removed = 0;

  constructor(header: TraceHeader, offsetMicros: Micros, requestsBefore: number, range: SliceRange, left: Tally) {
    this.#fleet = new FleetState(header);
    this.#range = range;
    this.#offsetMicros = offsetMicros;
    this.#left = left;
    this.#fromStart = offsetMicros >= range.fromMicros && requestsBefore >= range.fromRequest;
    this.#kept = new KeptRequests((_, ordinal) => this.#inRange(requestsBefore + ordinal));
  }

  get requestsSeen(): number {
    return this.#kept.requestsSeen;
  }

  *take(item: TraceRecord): Generator<TraceItem> {
    const { input } = item;
    this.#at = input.at;
    const stays = this.#kept.stays(input);
    const arrives = input.kind === "request-arrived";
    if (arrives && !stays) this.#left.count("outside the range");
    if (this.#state === "before" && (arrives ? stays : this.#fromStart && this.#isBeforeEnd())) yield* this.#begin();
    if (this.#state === "inside" && (arrives ? !stays : !this.#isBeforeEnd())) this.#state = "after";
    this.#fleet.take(input);
    if (this.#state === "inside" && stays) yield item;
    else if (this.#state === "after" && stays && "requestId" in input) yield* this.#trailing(item);
    else this.#removed++;
  }

  *gap(gap: TraceGap): Generator<TraceItem> {
    if (this.#state === "inside") yield gap;
    else this.#removed += gap.dropped;
  }

  *#begin(): Generator<TraceItem> {
    this.#state = "inside";
    this.#removed = 0;
    const { fromMicros, toMicros, fromRequest, toRequest } = this.#range;
    const step = `slice, microseconds ${fromMicros} to ${toMicros}, requests ${fromRequest} to ${toRequest}`;
    yield { kind: "run", header: derivedHeader(this.#fleet.header(0), step, this.#fromStart) };
    for (const input of this.#fleet.standing(this.#at)) yield { kind: "record", input, decision: undefined };
  }

  *#trailing(item: TraceRecord): Generator<TraceItem> {
    if (item.decision !== undefined && this.#removed > 0) {
      yield { kind: "gap", at: item.input.at, dropped: this.#removed };
      this.#removed = 0;
    }
    yield item;
  }

  #isBeforeEnd(): boolean {
    return this.#at + this.#offsetMicros < this.#range.toMicros;
  }

  #inRange(ordinal: number): boolean {
    const { fromMicros, fromRequest, toRequest } = this.#range;
    const isAfterStart = this.#at + this.#offsetMicros >= fromMicros;
    return isAfterStart && this.#isBeforeEnd() && ordinal >= fromRequest && ordinal < toRequest;
  }
}
