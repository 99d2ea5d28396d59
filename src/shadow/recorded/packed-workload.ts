import { sloWith } from "#core/request/slo.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";

/** A workload's requests by place: an array of them, or many in little memory. */
export interface WorkloadRequests extends Iterable<WorkloadRequest> {
  readonly length: number;
  at(index: number): WorkloadRequest | undefined;
}

/** Numbers of a request; those of names, and NaN for what it has not. */
const NUMBERS = [
  "arrivalMicros",
  "thinkMicros",
  "timeoutMicros",
  "ttftTargetMicros",
  "tpotTargetMicros",
  "turn",
  "promptTokens",
  "outputTokens",
  "sequences",
  "blockTokens",
  "session",
  "tenant",
  "sloClass",
  "model",
  "parentSession",
  "parentTurn",
  "idsFrom",
  "idsTo",
  "tokensFrom",
  "tokensTo",
  "promptsFrom",
  "promptsTo",
  "answerFrom",
  "answerTo",
  "cacheRead",
] as const;
type Numbers = Readonly<Record<(typeof NUMBERS)[number], number>>;

/** Plain data over shared memory, so that threads get it without a copy. */
export interface WorkloadColumns {
  readonly length: number;
  /** A row of NUMBERS per request. */
  readonly rows: Float64Array;
  readonly blockIds: Float64Array;
  /** Of prompts, and the tokens that each of several has. */
  readonly tokenIds: Int32Array;
  readonly names: readonly string[];
  /** Conversations that a request joins, of those few that do. */
  readonly joins: ReadonlyMap<number, readonly string[]>;
}

/** Takes requests in, numbered anew, without their texts. */
export class WorkloadPacker {
  readonly #rows = new Growing(Float64Array);
  readonly #blockIds = new Growing(Float64Array);
  readonly #tokenIds = new Growing(Int32Array);
  readonly #names: string[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #joins = new Map<number, readonly string[]>();
  length = 0;

  push(request: WorkloadRequest): void {
    const { parent, blockIds, tokenIds, tokensByPrompt, answerIds, joins } = request;
    const idsFrom = blockIds === undefined ? NaN : this.#blockIds.append(blockIds);
    const tokensFrom = tokenIds === undefined ? NaN : this.#tokenIds.append(tokenIds);
    const promptsFrom = tokensByPrompt === undefined ? NaN : this.#tokenIds.append(tokensByPrompt);
    const answerFrom = answerIds === undefined ? NaN : this.#blockIds.append(answerIds);
    const numbers: Numbers = {
      arrivalMicros: request.arrivalMicros,
      thinkMicros: request.thinkMicros ?? NaN,
      timeoutMicros: request.timeoutMicros ?? NaN,
      ttftTargetMicros: request.slo?.ttftMicros ?? NaN,
      tpotTargetMicros: request.slo?.tpotMicros ?? NaN,
      turn: request.turn,
      promptTokens: request.promptTokens,
      outputTokens: request.outputTokens,
      sequences: request.sequences ?? 1,
      blockTokens: request.blockTokens,
      session: this.#numberOf(request.session),
      tenant: this.#numberOf(request.tenant),
      sloClass: this.#numberOf(request.sloClass),
      model: this.#numberOf(request.model),
      parentSession: parent === undefined ? NaN : this.#numberOf(parent.session),
      parentTurn: parent?.turn ?? NaN,
      idsFrom,
      idsTo: idsFrom + (blockIds?.length ?? 0),
      tokensFrom,
      tokensTo: tokensFrom + (tokenIds?.length ?? 0),
      promptsFrom,
      promptsTo: promptsFrom + (tokensByPrompt?.length ?? 0),
      answerFrom,
      answerTo: answerFrom + (answerIds?.length ?? 0),
      cacheRead: request.cacheRead === false ? 0 : NaN,
    };
    this.#rows.append(NUMBERS.map((name) => numbers[name]));
    if (joins.length > 0) this.#joins.set(this.length, joins);
    this.length++;
  }

  columns(): WorkloadColumns {
    const { length } = this;
    const [rows, blockIds, tokenIds] = [this.#rows.shared(), this.#blockIds.shared(), this.#tokenIds.shared()];
    return { length, rows, blockIds, tokenIds, names: this.#names, joins: this.#joins };
  }

  #numberOf(name: string): number {
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    const number = this.#names.push(name) - 1;
    this.#numbers.set(name, number);
    return number;
  }
}

/** Makes each request when it is asked for. */
export class PackedWorkload implements WorkloadRequests {
  readonly columns: WorkloadColumns;

  constructor(columns: WorkloadColumns) {
    this.columns = columns;
  }

  get length(): number {
    return this.columns.length;
  }

  at(index: number): WorkloadRequest | undefined {
    const { length, names, joins, blockIds, tokenIds, rows } = this.columns;
    if (!(index >= 0 && index < length)) return undefined;
    const number = (name: (typeof NUMBERS)[number]) => rows[index * NUMBERS.length + PLACES[name]]!;
    const known = (name: (typeof NUMBERS)[number]) => (Number.isNaN(number(name)) ? undefined : number(name));
    const parent = known("parentSession");
    const ids = known("idsFrom");
    const tokens = known("tokensFrom");
    const prompts = known("promptsFrom");
    const answer = known("answerFrom");
    const slo = sloWith(known("ttftTargetMicros"), known("tpotTargetMicros"));
    return {
      index,
      arrivalMicros: number("arrivalMicros"),
      session: names[number("session")]!,
      turn: number("turn"),
      parent: parent === undefined ? undefined : { session: names[parent]!, turn: number("parentTurn") },
      joins: joins.get(index) ?? [],
      thinkMicros: known("thinkMicros"),
      promptTokens: number("promptTokens"),
      outputTokens: number("outputTokens"),
      ...(number("sequences") > 1 && { sequences: number("sequences") }),
      ...(prompts !== undefined && { tokensByPrompt: [...tokenIds.subarray(prompts, number("promptsTo"))] }),
      blockIds: ids === undefined ? undefined : blockIds.subarray(ids, number("idsTo")),
      blockTokens: number("blockTokens"),
      ...(answer !== undefined && { answerIds: blockIds.subarray(answer, number("answerTo")) }),
      ...(known("cacheRead") === 0 && { cacheRead: false }),
      text: undefined,
      tokenIds: tokens === undefined ? undefined : tokenIds.subarray(tokens, number("tokensTo")),
      tenant: names[number("tenant")]!,
      sloClass: names[number("sloClass")]!,
      model: names[number("model")]!,
      timeoutMicros: known("timeoutMicros"),
      ...(slo !== undefined && { slo }),
    };
  }

  *[Symbol.iterator](): Generator<WorkloadRequest> {
    for (let index = 0; index < this.length; index++) yield this.at(index)!;
  }
}

/** The same requests in shared memory. */
export function columnsOf(workload: WorkloadRequests): WorkloadColumns {
  if (workload instanceof PackedWorkload) return workload.columns;
  const packer = new WorkloadPacker();
  for (const request of workload) packer.push(request);
  return packer.columns();
}

const PLACES = Object.fromEntries(NUMBERS.map((name, place) => [name, place])) as Numbers;

/** Numbers of one kind that become more. */
class Growing<T extends Float64Array | Int32Array> {
  readonly #kind: new (of: number | SharedArrayBuffer) => T;
  #values: T;
  #length = 0;

  constructor(kind: new (of: number | SharedArrayBuffer) => T) {
    this.#kind = kind;
    this.#values = new kind(1024);
  }

  /** Where the first of them is. */
  append(values: ArrayLike<number>): number {
    const from = this.#length;
    this.#length += values.length;
    if (this.#length > this.#values.length) {
      const wide = new this.#kind(Math.max(this.#length, 2 * this.#values.length));
      wide.set(this.#values);
      this.#values = wide;
    }
    this.#values.set(values, from);
    return from;
  }

  shared(): T {
    const bytes = this.#length * this.#values.BYTES_PER_ELEMENT;
    const shared = new this.#kind(new SharedArrayBuffer(bytes));
    shared.set(this.#values.subarray(0, this.#length));
    return shared;
  }
}
