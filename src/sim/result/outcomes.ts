import type { SimulatedRequest } from "../setting/arrival-source.ts";

/**
 * How a request ended.
 * - completed; length: cut where the model's length ends
 * - rejected: by admission; unplaced: the router had no endpoint
 * - too-long, never-fits: the engine can never serve it
 * - timed-out: its client gave up, or a limit was reached
 * - lost: its attempts failed before its first token, and none was left; cut: its answer broke after it
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
  "cut",
] as const;
export type Status = (typeof STATUSES)[number];
export type Ending = Exclude<Status, "open">;

/** Every request's outcome, a row each in order of arrival, in columns. Times in microseconds; NaN is never. */
export class Outcomes {
  /** Position in STATUSES. */
  status: Uint8Array = new Uint8Array(ROWS);
  arrivalAt: Float64Array = new Float64Array(ROWS);
  /** Number of the endpoint that answered, in order of their joining; -1 for none. */
  endpoint: Int16Array = new Int16Array(ROWS);
  /** Number of the endpoint that computed the prompt, where that is another one; else -1. */
  prefillEndpoint: Int16Array = new Int16Array(ROWS);
  /** From arrival until the client had the first and the last token. */
  ttft: Float64Array = new Float64Array(ROWS);
  e2e: Float64Array = new Float64Array(ROWS);
  /** From arrival until first admitted to a batch. */
  queueDelay: Float64Array = new Float64Array(ROWS);
  promptTokens: Int32Array = new Int32Array(ROWS);
  /** Tokens that the client got of each answer. */
  outputTokens: Int32Array = new Int32Array(ROWS);
  /** Answers that the engine made side by side. */
  sequences: Uint16Array = new Uint16Array(ROWS);
  /** Prompt tokens that the engine found in its cache. */
  cachedTokens: Int32Array = new Int32Array(ROWS);
  /** Prompt tokens that the router expected the engine to hold. */
  expectedTokens: Int32Array = new Int32Array(ROWS);
  preemptions: Uint16Array = new Uint16Array(ROWS);
  /** Endpoints that the request was sent to. */
  attempts: Uint8Array = new Uint8Array(ROWS);
  /** vLLM's priority: lower runs earlier. */
  priority: Int32Array = new Int32Array(ROWS);
  /** Positions in `classes` and `tenants`. */
  sloClass: Uint16Array = new Uint16Array(ROWS);
  tenant: Uint16Array = new Uint16Array(ROWS);
  /** Number of its session, in order of their first requests; -1 where it names none. */
  session: Int32Array = new Int32Array(ROWS);
  readonly ids: string[] = [];
  readonly classes: string[] = [];
  readonly tenants: string[] = [];
  readonly #sessionOf = new Map<string, number>();
  readonly #classOf = new Map<string, number>();
  readonly #tenantOf = new Map<string, number>();

  /** Requests; columns are longer until `trim`. */
  get length(): number {
    return this.ids.length;
  }

  /** Sessions that the requests name. */
  get sessions(): number {
    return this.#sessionOf.size;
  }

  /** A row for a request that has arrived. */
  open({ route, arrivalAt }: SimulatedRequest): number {
    const row = this.ids.push(route.id) - 1;
    if (row === this.status.length) this.#resize(2 * row);
    this.arrivalAt[row] = arrivalAt;
    this.endpoint[row] = -1;
    this.prefillEndpoint[row] = -1;
    this.ttft[row] = NaN;
    this.e2e[row] = NaN;
    this.queueDelay[row] = NaN;
    this.promptTokens[row] = route.promptTokens;
    this.sequences[row] = Math.min(route.sequences, SEQUENCES_MAX);
    this.priority[row] = route.priority;
    this.sloClass[row] = numbered(route.sloClass, this.classes, this.#classOf);
    this.tenant[row] = numbered(route.tenant, this.tenants, this.#tenantOf);
    this.session[row] = this.#sessionNumber(route.session);
    return row;
  }

  #sessionNumber(session: string): number {
    if (session === "") return -1;
    let number = this.#sessionOf.get(session);
    if (number === undefined) this.#sessionOf.set(session, (number = this.#sessionOf.size));
    return number;
  }

  end(row: number, status: Ending): void {
    this.status[row] = STATUSES.indexOf(status);
  }

  /** Nothing of an attempt that failed is left. */
  again(row: number): void {
    this.status[row] = 0;
    this.ttft[row] = NaN;
    this.e2e[row] = NaN;
    this.queueDelay[row] = NaN;
    this.outputTokens[row] = 0;
    this.cachedTokens[row] = 0;
  }

  /** What engines did with a request, from its row elsewhere. */
  copy(row: number, from: Outcomes, fromRow: number): void {
    this.status[row] = from.status[fromRow]!;
    this.ttft[row] = from.ttft[fromRow]!;
    this.e2e[row] = from.e2e[fromRow]!;
    this.queueDelay[row] = from.queueDelay[fromRow]!;
    this.outputTokens[row] = from.outputTokens[fromRow]!;
    this.cachedTokens[row] = from.cachedTokens[fromRow]!;
    this.preemptions[row] = from.preemptions[fromRow]!;
  }

  /** Tokens that the client got of all its answers. */
  tokensOf(row: number): number {
    return this.outputTokens[row]! * this.sequences[row]!;
  }

  statusOf(row: number): Status {
    return STATUSES[this.status[row] ?? 0] ?? "open";
  }

  isCompleted(row: number): boolean {
    const status = this.status[row];
    return status === COMPLETED || status === LENGTH;
  }

  /** Cuts the columns to their rows. */
  trim(): void {
    this.#resize(this.length);
  }

  #resize(rows: number): void {
    this.status = sized(this.status, rows);
    this.arrivalAt = sized(this.arrivalAt, rows);
    this.endpoint = sized(this.endpoint, rows);
    this.prefillEndpoint = sized(this.prefillEndpoint, rows);
    this.ttft = sized(this.ttft, rows);
    this.e2e = sized(this.e2e, rows);
    this.queueDelay = sized(this.queueDelay, rows);
    this.promptTokens = sized(this.promptTokens, rows);
    this.outputTokens = sized(this.outputTokens, rows);
    this.sequences = sized(this.sequences, rows);
    this.cachedTokens = sized(this.cachedTokens, rows);
    this.expectedTokens = sized(this.expectedTokens, rows);
    this.preemptions = sized(this.preemptions, rows);
    this.attempts = sized(this.attempts, rows);
    this.priority = sized(this.priority, rows);
    this.sloClass = sized(this.sloClass, rows);
    this.tenant = sized(this.tenant, rows);
    this.session = sized(this.session, rows);
  }
}

/** Rows at the start. */
const ROWS = 64;

type Numbers = Float64Array | Int32Array | Int16Array | Uint16Array | Uint8Array;

function sized<T extends Numbers>(column: T, rows: number): T {
  const other = new (column.constructor as new (length: number) => T)(rows);
  other.set(rows < column.length ? column.subarray(0, rows) : column);
  return other;
}

const COMPLETED = STATUSES.indexOf("completed");
const LENGTH = STATUSES.indexOf("length");
const SEQUENCES_MAX = 65_535;
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
