import type { Breakdown, CandidateRow } from "./decision.ts";
import type { EndpointId } from "./endpoint/endpoint.ts";
import type { Freshness, Snapshot } from "./endpoint/snapshot.ts";

/** Stands in `values` for a scorer that abstained. */
export const ABSTAINED = -1;

export type CandidateLoad = Pick<CandidateRow, "effectiveLoad" | "prefillTokensQueued" | "hitTokens">;

const COLUMNS = 8;
const FRESHNESS: readonly Freshness[] = ["fresh", "stale", "unknown"];

const SLAB_DOUBLES = 8192;

/**
 * Room for the columns of many decisions in one piece. An array of its own for each costs an allocation outside the
 * heap; a kept decision keeps its slab.
 */
export class DoubleSlab {
  #room = new Float64Array(0);
  #used = 0;

  /** So many zeros that nobody else will get. */
  take(length: number): Float64Array {
    if (this.#used + length > this.#room.length) {
      this.#room = new Float64Array(Math.max(SLAB_DOUBLES, length));
      this.#used = 0;
    }
    const from = this.#used;
    this.#used += length;
    return this.#room.subarray(from, this.#used);
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
  /** Index into `#removers` of what removed each endpoint; 0 is nothing. */
  readonly #removedBy: Uint8Array;
  readonly #removers: readonly string[];
  readonly #signals: Float64Array;

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
    this.values = slab.take(count * scorers.length);
    this.totals = slab.take(count);
    this.#removedBy = new Uint8Array(count);
    this.#removers = removers;
    this.#signals = slab.take(count * COLUMNS);
    this.begin(snapshots);
  }

  /** Nothing is decided yet. Copies the snapshots' signals: snapshots are reused by the next decision. */
  begin(snapshots: readonly Snapshot[]): void {
    this.values.fill(NaN);
    this.totals.fill(NaN);
    this.#removedBy.fill(0);
    this.clamped = 0;
    for (let i = 0, at = 0; i < snapshots.length; i++, at += COLUMNS) {
      const snapshot = snapshots[i]!;
      this.#signals[at] = FRESHNESS.indexOf(snapshot.freshness);
      this.#signals[at + 1] = snapshot.loadAgeMicros;
      this.#signals[at + 2] = snapshot.effectiveLoad;
      this.#signals[at + 3] = snapshot.kvUtilization;
      this.#signals[at + 4] = snapshot.requestsInFlight;
      this.#signals[at + 5] = snapshot.prefillTokensQueued;
      this.#signals[at + 6] = snapshot.hitTokens;
      this.#signals[at + 7] = snapshot.prefixSource === "precise" ? 1 : 0;
    }
  }

  remove(index: number, remover: number): void {
    this.#removedBy[index] = remover;
  }

  get candidates(): readonly CandidateRow[] {
    return this.endpoints.map((_, i) => this.row(i));
  }

  /** What of a row shows how much was there, for who asks at every request. */
  loadOf(index: number): CandidateLoad {
    const at = index * COLUMNS;
    return {
      effectiveLoad: this.#signals[at + 2]!,
      prefillTokensQueued: this.#signals[at + 5]!,
      hitTokens: this.#signals[at + 6]!,
    };
  }

  /** One of `candidates`, for who needs few of many. */
  row(index: number): CandidateRow {
    const at = index * COLUMNS;
    return {
      endpoint: this.endpoints[index]!,
      removedBy: this.#removers[this.#removedBy[index]!]!,
      freshness: FRESHNESS[this.#signals[at]!]!,
      loadAgeMicros: this.#signals[at + 1]!,
      effectiveLoad: this.#signals[at + 2]!,
      kvUtilization: this.#signals[at + 3]!,
      requestsInFlight: this.#signals[at + 4]!,
      prefillTokensQueued: this.#signals[at + 5]!,
      hitTokens: this.#signals[at + 6]!,
      prefixSource: this.#signals[at + 7] === 1 ? "precise" : "approximate",
    };
  }
}
