import type { Breakdown, CandidateRow } from "./decision.ts";
import type { EndpointId } from "../endpoint/endpoint.ts";
import type { Freshness, Snapshot } from "../endpoint/snapshot.ts";

/** Stands in `values` for a scorer that abstained. */
export const ABSTAINED = -1;

export type CandidateLoad = Pick<CandidateRow, "effectiveLoad" | "prefillTokensQueued" | "hitTokens">;

/** Columns of a row: signals. */
const CODES = 0;
const LOAD_AGE_MICROS = 1;
const EFFECTIVE_LOAD = 2;
const KV_UTILIZATION = 3;
const REQUESTS_IN_FLIGHT = 4;
const PREFILL_TOKENS_QUEUED = 5;
const HIT_TOKENS = 6;
const COLUMNS = 7;
/** CODES: the index of the freshness, whether the prefix source is precise, and from this bit on what removed the endpoint. */
const FRESHNESS_MASK = 3;
const PRECISE = 4;
const REMOVED_BY_SHIFT = 3;
const FRESHNESS: readonly Freshness[] = ["fresh", "stale", "unknown"];

/** Where the highest total is beside the chosen one's; -1 where nobody else was left. */
export function nextBest(totals: Float64Array, chosen: number): number {
  let next = -1;
  for (let i = 0; i < totals.length; i++) {
    if (i !== chosen && totals[i]! >= 0 && (next < 0 || totals[i]! > totals[next]!)) next = i;
  }
  return next;
}

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

/** What a decision saw, as numbers in one array: `row` makes an object of an endpoint's when somebody looks at it. */
export class ColumnBreakdown implements Breakdown {
  readonly endpoints: readonly EndpointId[];
  readonly scorers: Breakdown["scorers"];
  readonly values: Float64Array;
  readonly totals: Float64Array;
  clamped = 0;
  readonly #removers: readonly string[];
  /** Rows of COLUMNS from `#from` on; what removed one is an index into `#removers`, 0 for nothing. */
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
      cells[at + CODES] = codeOf(snapshot.freshness) | (snapshot.prefixSource === "precise" ? PRECISE : 0);
      cells[at + LOAD_AGE_MICROS] = snapshot.loadAgeMicros;
      cells[at + EFFECTIVE_LOAD] = snapshot.effectiveLoad;
      cells[at + KV_UTILIZATION] = snapshot.kvUtilization;
      cells[at + REQUESTS_IN_FLIGHT] = snapshot.requestsInFlight;
      cells[at + PREFILL_TOKENS_QUEUED] = snapshot.prefillTokensQueued;
      cells[at + HIT_TOKENS] = snapshot.hitTokens;
    }
  }

  remove(index: number, remover: number): void {
    const at = this.#from + index * COLUMNS + CODES;
    this.#cells[at] = (this.#cells[at]! & (FRESHNESS_MASK | PRECISE)) | (remover << REMOVED_BY_SHIFT);
  }

  get candidates(): readonly CandidateRow[] {
    return this.endpoints.map((_, i) => this.row(i));
  }

  /** The part of a row that shows the load, for callers that need it at every request. */
  loadOf(index: number): CandidateLoad {
    const at = this.#from + index * COLUMNS;
    return {
      effectiveLoad: this.#cells[at + EFFECTIVE_LOAD]!,
      prefillTokensQueued: this.#cells[at + PREFILL_TOKENS_QUEUED]!,
      hitTokens: this.#cells[at + HIT_TOKENS]!,
    };
  }

  /** One of `candidates`, for callers that need few of many. */
  row(index: number): CandidateRow {
    const at = this.#from + index * COLUMNS;
    const codes = this.#cells[at + CODES]!;
    return {
      endpoint: this.endpoints[index]!,
      removedBy: this.#removers[codes >> REMOVED_BY_SHIFT]!,
      freshness: FRESHNESS[codes & FRESHNESS_MASK]!,
      loadAgeMicros: this.#cells[at + LOAD_AGE_MICROS]!,
      effectiveLoad: this.#cells[at + EFFECTIVE_LOAD]!,
      kvUtilization: this.#cells[at + KV_UTILIZATION]!,
      requestsInFlight: this.#cells[at + REQUESTS_IN_FLIGHT]!,
      prefillTokensQueued: this.#cells[at + PREFILL_TOKENS_QUEUED]!,
      hitTokens: this.#cells[at + HIT_TOKENS]!,
      prefixSource: (codes & PRECISE) !== 0 ? "precise" : "approximate",
    };
  }
}

/** Its place in FRESHNESS, without a call for each endpoint. */
function codeOf(freshness: Freshness): number {
  if (freshness === "fresh") return 0;
  return freshness === "stale" ? 1 : 2;
}
