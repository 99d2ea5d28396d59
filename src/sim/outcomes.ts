import type { Micros } from "#core/units.ts";
import { Column } from "./result/column.ts";
import type { SimulatedRequest } from "./source/arrival-source.ts";

/**
 * How a request ended.
 * - completed; length: cut where the model's length ends
 * - rejected: by admission; unplaced: the router had no endpoint
 * - too-long, never-fits: the engine can never serve it
 * - timed-out: its client gave up; lost: its endpoint left and no other could take it
 * - open: it had not ended at the horizon
 */
export const STATUSES = [
  "open",
  "completed",
  "length",
  "rejected",
  "unplaced",
  "too-long",
  "never-fits",
  "timed-out",
  "lost",
] as const;
export type Status = (typeof STATUSES)[number];

/** Every request's outcome, a row each in order of arrival, in columns. Times in microseconds; NaN is never. */
export class Outcomes {
  /** Position in STATUSES. */
  readonly status: Column<Uint8Array> = new Column(Uint8Array);
  readonly arrivalAt: Column<Float64Array> = new Column(Float64Array);
  /** Number of the endpoint that answered, in order of their joining; -1 for none. */
  readonly endpoint: Column<Int16Array> = new Column(Int16Array);
  /** From arrival until the client had the first and the last token. */
  readonly ttft: Column<Float64Array> = new Column(Float64Array);
  readonly e2e: Column<Float64Array> = new Column(Float64Array);
  /** From arrival until first admitted to a batch. */
  readonly queueDelay: Column<Float64Array> = new Column(Float64Array);
  readonly promptTokens: Column<Int32Array> = new Column(Int32Array);
  /** Tokens that the client got. */
  readonly outputTokens: Column<Int32Array> = new Column(Int32Array);
  /** Prompt tokens that the engine found in its cache. */
  readonly cachedTokens: Column<Int32Array> = new Column(Int32Array);
  /** Prompt tokens that the router expected the engine to hold. */
  readonly expectedTokens: Column<Int32Array> = new Column(Int32Array);
  readonly preemptions: Column<Uint16Array> = new Column(Uint16Array);
  /** Endpoints that the request was sent to. */
  readonly attempts: Column<Uint8Array> = new Column(Uint8Array);
  /** vLLM's priority: lower runs earlier. */
  readonly priority: Column<Int32Array> = new Column(Int32Array);
  /** Positions in `classes` and `tenants`. */
  readonly sloClass: Column<Uint16Array> = new Column(Uint16Array);
  readonly tenant: Column<Uint16Array> = new Column(Uint16Array);
  readonly ids: string[] = [];
  readonly classes: string[] = [];
  readonly tenants: string[] = [];
  readonly #classOf = new Map<string, number>();
  readonly #tenantOf = new Map<string, number>();

  get length(): number {
    return this.ids.length;
  }

  /** A row for a request that has arrived. */
  open({ route, arrivalAt }: SimulatedRequest): number {
    const row = this.ids.push(route.id) - 1;
    this.status.put(row, 0);
    this.arrivalAt.put(row, arrivalAt);
    this.endpoint.put(row, -1);
    this.ttft.put(row, NaN);
    this.e2e.put(row, NaN);
    this.queueDelay.put(row, NaN);
    this.promptTokens.put(row, route.promptTokens);
    this.outputTokens.put(row, 0);
    this.cachedTokens.put(row, 0);
    this.expectedTokens.put(row, 0);
    this.preemptions.put(row, 0);
    this.attempts.put(row, 0);
    this.priority.put(row, route.priority);
    this.sloClass.put(row, numbered(route.sloClass, this.classes, this.#classOf));
    this.tenant.put(row, numbered(route.tenant, this.tenants, this.#tenantOf));
    return row;
  }

  end(row: number, status: Exclude<Status, "open">): void {
    this.status.put(row, STATUSES.indexOf(status));
  }

  statusOf(row: number): Status {
    return STATUSES[this.status.at(row)] ?? "open";
  }

  isCompleted(row: number): boolean {
    const status = this.status.at(row);
    return status === COMPLETED || status === LENGTH;
  }

  arrivalOf(row: number): Micros {
    return this.arrivalAt.at(row);
  }
}

const COMPLETED = STATUSES.indexOf("completed");
const LENGTH = STATUSES.indexOf("length");
/** Names beyond so many are counted as the last one. */
const NAMES_MAX = 65_535;

function numbered(name: string, names: string[], numbers: Map<string, number>): number {
  const known = numbers.get(name);
  if (known !== undefined) return known;
  if (names.length === NAMES_MAX) return NAMES_MAX - 1;
  const number = names.push(name) - 1;
  numbers.set(name, number);
  return number;
}
