import type { Outcomes } from "./outcomes.ts";

/** Failures of scheduling that policies should prevent. */
export interface Anomalies {
  /** Admissions to a batch while a request of higher priority waited at the same endpoint. */
  readonly priorityInversions: number;
  /** Requests that waited while one of lower priority, at the same endpoint, was served to its end. */
  readonly holBlockingEvents: number;
}

const NONE: Anomalies = { priorityInversions: 0, holBlockingEvents: 0 };

/** Finds them in the outcomes: a request waits from its arrival until it is first admitted to a batch. */
export function findAnomalies(outcomes: Outcomes): Anomalies {
  if (allAlike(outcomes.priority)) return NONE;
  const priorities = [...new Set(outcomes.priority)].sort((a, b) => a - b);
  const rankOf = new Map(priorities.map((priority, rank) => [priority, rank]));
  const byEndpoint = new Map<number, number[]>();
  for (let row = 0; row < outcomes.length; row++) {
    const endpoint = outcomes.endpoint[row]!;
    if (endpoint < 0 || Number.isNaN(outcomes.queueDelay[row]!)) continue;
    const rows = byEndpoint.get(endpoint);
    if (rows === undefined) byEndpoint.set(endpoint, [row]);
    else rows.push(row);
  }
  let priorityInversions = 0;
  let holBlockingEvents = 0;
  for (const rows of byEndpoint.values()) {
    const found = new EndpointSweep(outcomes, rows, (priority) => rankOf.get(priority) ?? 0, priorities.length);
    priorityInversions += found.inversions;
    holBlockingEvents += found.blocked;
  }
  return { priorityInversions, holBlockingEvents };
}

function allAlike(numbers: Int32Array): boolean {
  for (let i = 1; i < numbers.length; i++) if (numbers[i] !== numbers[0]) return false;
  return true;
}

/** Goes through one endpoint's arrivals, admissions and ends in order of time. */
class EndpointSweep {
  inversions = 0;
  blocked = 0;
  readonly #waiting: Int32Array;
  /** Waiting requests of that rank that were not yet counted as blocked. */
  readonly #unblocked: Int32Array;
  /** Moment from which on waiting requests of that rank are counted anew. */
  readonly #countedAt: Float64Array;

  constructor(outcomes: Outcomes, rows: readonly number[], rankOf: (priority: number) => number, ranks: number) {
    this.#waiting = new Int32Array(ranks);
    this.#unblocked = new Int32Array(ranks);
    this.#countedAt = new Float64Array(ranks).fill(-1);
    const moments = rows.flatMap((row) => {
      const arrivalAt = outcomes.arrivalAt[row]!;
      const e2e = outcomes.e2e[row]!;
      const rank = rankOf(outcomes.priority[row]!);
      const admittedAt = arrivalAt + outcomes.queueDelay[row]!;
      return [
        { at: arrivalAt, kind: 0, rank, row, arrivalAt },
        { at: admittedAt, kind: 1, rank, row, arrivalAt },
        ...(Number.isNaN(e2e) ? [] : [{ at: arrivalAt + e2e, kind: 2, rank, row, arrivalAt }]),
      ];
    });
    // All that is admitted at one instant leaves the queue before its order is judged, the more urgent first.
    moments.sort((a, b) => a.at - b.at || a.kind - b.kind || a.rank - b.rank || a.row - b.row);
    for (const { kind, rank, at, arrivalAt } of moments) {
      if (kind === 0) this.#arrived(rank);
      else if (kind === 1) this.#admitted(rank, arrivalAt);
      else this.#ended(rank, at);
    }
  }

  #arrived(rank: number): void {
    this.#waiting[rank]!++;
    this.#unblocked[rank]!++;
  }

  #admitted(rank: number, arrivalAt: number): void {
    this.#waiting[rank]!--;
    if (arrivalAt > this.#countedAt[rank]!) this.#unblocked[rank]!--;
    for (let higher = 0; higher < rank; higher++) {
      if (!(this.#waiting[higher]! > 0)) continue;
      this.inversions++;
      return;
    }
  }

  #ended(rank: number, at: number): void {
    for (let higher = 0; higher < rank; higher++) {
      this.blocked += this.#unblocked[higher]!;
      this.#unblocked[higher] = 0;
      this.#countedAt[higher] = at;
    }
  }
}
