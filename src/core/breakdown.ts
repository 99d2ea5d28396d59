import type { Breakdown, CandidateRow } from "./decision.ts";
import type { EndpointId } from "./endpoint/endpoint.ts";
import type { Freshness, Snapshot } from "./endpoint/snapshot.ts";

/** Stands in `values` for a scorer that abstained. */
export const ABSTAINED = -1;

const COLUMNS = 7;
const FRESHNESS: readonly Freshness[] = ["fresh", "stale", "unknown"];

/**
 * What a decision saw, in columns: one allocation per column, not one object per endpoint. Rows are made when somebody
 * looks at them.
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

  /** Copies the snapshots' signals: snapshots are reused by the next decision. */
  constructor(
    snapshots: readonly Snapshot[],
    endpoints: readonly EndpointId[],
    scorers: Breakdown["scorers"],
    removers: readonly string[],
  ) {
    const count = snapshots.length;
    this.endpoints = endpoints;
    this.scorers = scorers;
    this.values = new Float64Array(count * scorers.length).fill(NaN);
    this.totals = new Float64Array(count).fill(NaN);
    this.#removedBy = new Uint8Array(count);
    this.#removers = removers;
    this.#signals = new Float64Array(count * COLUMNS);
    for (let i = 0, at = 0; i < count; i++, at += COLUMNS) {
      const snapshot = snapshots[i]!;
      this.#signals[at] = FRESHNESS.indexOf(snapshot.freshness);
      this.#signals[at + 1] = snapshot.loadAgeMicros;
      this.#signals[at + 2] = snapshot.effectiveLoad;
      this.#signals[at + 3] = snapshot.kvUtilization;
      this.#signals[at + 4] = snapshot.requestsInFlight;
      this.#signals[at + 5] = snapshot.prefillTokensQueued;
      this.#signals[at + 6] = snapshot.hitTokens;
    }
  }

  remove(index: number, remover: number): void {
    this.#removedBy[index] = remover;
  }

  removed(index: number): boolean {
    return this.#removedBy[index] !== 0;
  }

  get candidates(): readonly CandidateRow[] {
    return this.endpoints.map((_, i) => this.row(i));
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
    };
  }
}
