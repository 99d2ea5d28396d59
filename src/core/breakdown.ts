import type { Breakdown, CandidateRow } from "./decision.ts";
import type { EndpointId } from "./endpoint/endpoint.ts";
import type { Freshness, Snapshot } from "./endpoint/snapshot.ts";

/** Stands in `values` for a scorer that abstained. */
export const ABSTAINED = -1;

export type CandidateLoad = Pick<CandidateRow, "effectiveLoad" | "prefillTokensQueued" | "hitTokens">;

/** Signals, and last what removed the endpoint. */
const COLUMNS = 9;
const REMOVED_BY = 8;
const FRESHNESS: readonly Freshness[] = ["fresh", "stale", "unknown"];

const SLAB_DOUBLES = 8192;

/**
 * Room for the columns of many decisions in one piece. An array of its own for each costs an allocation outside the
 * heap; a kept decision keeps its slab.
 */
export class DoubleSlab {
  /** Where the piece that was taken last lies. */
  room: Float64Array = new Float64Array(0);
  #used = 0;

  /** So many zeros that nobody else will get. */
  take(length: number): Float64Array {
    const from = this.place(length);
    return this.room.subarray(from, from + length);
  }

  /** The same as where they begin in `room`: a view takes 0.1 us and 100 bytes, and not all need one. */
  place(length: number): number {
    if (this.#used + length > this.room.length) {
      this.room = new Float64Array(Math.max(SLAB_DOUBLES, length));
      this.#used = 0;
    }
    const from = this.#used;
    this.#used += length;
    return from;
  }
}

/** Of a request that nothing was scored for. */
export const EMPTY_BREAKDOWN: Breakdown = {
  candidates: [],
  scorers: [],
  values: new Float64Array(0),
  totals: new Float64Array(0),
  clamped: 0,
};

/**
 * What a decision saw, in columns, not in one object per endpoint. Rows are made when somebody looks at them.
 */
export class ColumnBreakdown implements Breakdown {
  readonly endpoints: readonly EndpointId[];
  readonly scorers: Breakdown["scorers"];
  readonly values: Float64Array;
  readonly totals: Float64Array;
  clamped = 0;
  readonly #removers: readonly string[];
  /** Rows of COLUMNS from `#from` on; of each the last is an index into `#removers` of what removed it, 0 for nothing. */
  readonly #cells: Float64Array;
  readonly #from: number;

  constructor(
    snapshots: readonly Snapshot[],
    endpoints: readonly EndpointId[],
    scorers: Breakdown["scorers"],
    removers: readonly string[],
    slab: DoubleSlab,
  ) {
    const count = snapshots.length;
    this.endpoints = endpoints;
    this.scorers = scorers;
    const rows = count * COLUMNS;
    const from = slab.place(rows + count * (1 + scorers.length));
    this.#cells = slab.room;
    this.#from = from;
    this.totals = slab.room.subarray(from + rows, from + rows + count);
    this.values = slab.room.subarray(from + rows + count, from + rows + count * (1 + scorers.length));
    this.#removers = removers;
    this.begin(snapshots);
  }

  /** Nothing is decided yet. Copies the snapshots' signals: snapshots are reused by the next decision. */
  begin(snapshots: readonly Snapshot[]): void {
    this.values.fill(NaN);
    this.totals.fill(NaN);
    this.clamped = 0;
    const cells = this.#cells;
    for (let i = 0, at = this.#from; i < snapshots.length; i++, at += COLUMNS) {
      const snapshot = snapshots[i]!;
      cells[at] = codeOf(snapshot.freshness);
      cells[at + 1] = snapshot.loadAgeMicros;
      cells[at + 2] = snapshot.effectiveLoad;
      cells[at + 3] = snapshot.kvUtilization;
      cells[at + 4] = snapshot.requestsInFlight;
      cells[at + 5] = snapshot.prefillTokensQueued;
      cells[at + 6] = snapshot.hitTokens;
      cells[at + 7] = snapshot.prefixSource === "precise" ? 1 : 0;
      cells[at + REMOVED_BY] = 0;
    }
  }

  remove(index: number, remover: number): void {
    this.#cells[this.#from + index * COLUMNS + REMOVED_BY] = remover;
  }

  get candidates(): readonly CandidateRow[] {
    return this.endpoints.map((_, i) => this.row(i));
  }

  /** What of a row shows how much was there, for who asks at every request. */
  loadOf(index: number): CandidateLoad {
    const at = this.#from + index * COLUMNS;
    return {
      effectiveLoad: this.#cells[at + 2]!,
      prefillTokensQueued: this.#cells[at + 5]!,
      hitTokens: this.#cells[at + 6]!,
    };
  }

  /** One of `candidates`, for who needs few of many. */
  row(index: number): CandidateRow {
    const at = this.#from + index * COLUMNS;
    return {
      endpoint: this.endpoints[index]!,
      removedBy: this.#removers[this.#cells[at + REMOVED_BY]!]!,
      freshness: FRESHNESS[this.#cells[at]!]!,
      loadAgeMicros: this.#cells[at + 1]!,
      effectiveLoad: this.#cells[at + 2]!,
      kvUtilization: this.#cells[at + 3]!,
      requestsInFlight: this.#cells[at + 4]!,
      prefillTokensQueued: this.#cells[at + 5]!,
      hitTokens: this.#cells[at + 6]!,
      prefixSource: this.#cells[at + 7] === 1 ? "precise" : "approximate",
    };
  }
}

/** Its place in FRESHNESS, without a call for each endpoint. */
function codeOf(freshness: Freshness): number {
  if (freshness === "fresh") return 0;
  return freshness === "stale" ? 1 : 2;
}
