import type { Endpoint } from "#core/endpoint/endpoint.ts";
import type { Input, RequestFinished } from "#core/input.ts";
import { SessionInference } from "#core/session/session-inference.ts";
import type { RouteRequest } from "#core/request.ts";
import type { Micros } from "#core/units.ts";
import type { FleetEvent } from "#sim/simulation-options.ts";
import type { TraceHeader, TraceItem } from "#trace/record.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";

/** What really happened to one request of a trace. Times in microseconds; NaN is never or not seen. */
export interface Observed {
  /** Endpoint that answered last; "" for none. */
  readonly endpoint: string;
  readonly ok: boolean;
  readonly ttftMicros: number;
  readonly e2eMicros: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
}

/** A trace as a simulation can use it: its exogenous part as a workload, and what was observed beside it. */
export interface RecordedRun {
  readonly header: TraceHeader;
  readonly workload: readonly WorkloadRequest[];
  /** Same order as the workload. */
  readonly observed: readonly Observed[];
  /** Endpoints that were there before the first request. */
  readonly endpoints: readonly Endpoint[];
  /** What became of the fleet after it, on the workload's clock. */
  readonly fleetEvents: readonly FleetEvent[];
  /** Requests that are not in the workload, by reason. */
  readonly left: Readonly<Record<string, number>>;
}

const STILL_OPEN = "still in flight at the end of the trace";

interface Open {
  readonly route: RouteRequest;
  readonly at: Micros;
  endpoint: string;
  firstTokenAt: Micros;
}

interface Ended extends Open {
  readonly endAt: Micros;
  readonly end: RequestFinished;
}

/**
 * Reads a trace's last run. A request whose end or answer length is not known cannot be simulated and is counted in
 * `left`; so is one that was refused. Conversations are those that clients named, else those whose prompts continue one
 * another; a turn that came after its predecessor's end is closed loop with the think time seen.
 */
export async function readRecordedRun(items: AsyncIterable<TraceItem>): Promise<RecordedRun> {
  let header: TraceHeader | undefined;
  let book = new RunBook();
  for await (const item of items) {
    if (item.kind === "run") {
      header = item.header;
      book = new RunBook();
      for (const endpoint of item.header.endpoints) book.endpoints.set(endpoint.id, endpoint);
    } else if (item.kind === "gap") book.leave("dropped by the recorder", item.dropped);
    else book.take(item.input, item.decision?.kind === "routed" ? item.decision.endpoint : undefined);
  }
  if (header === undefined) throw new Error("expected a trace with a header, got none");
  return book.close(header);
}

/** Collects a run as its items come; with a window, only its latest requests. */
export class RunBook {
  readonly endpoints = new Map<string, Endpoint>();
  readonly #fleetEvents: FleetEvent[] = [];
  readonly #open = new Map<string, Open>();
  readonly #ended: Ended[] = [];
  readonly #left = new Map<string, number>();
  readonly #requestsMax: number;
  #startedAt: Micros | undefined;

  constructor(requestsMax = Infinity) {
    this.#requestsMax = requestsMax;
  }

  /** Requests that could be simulated. */
  get requests(): number {
    return this.#ended.length;
  }

  leave(reason: string, count = 1): void {
    this.#left.set(reason, (this.#left.get(reason) ?? 0) + count);
  }

  take(input: Input, endpoint: string | undefined): void {
    switch (input.kind) {
      case "request-arrived":
        this.#startedAt ??= input.at;
        this.#open.set(input.request.id, {
          route: input.request,
          at: input.at,
          endpoint: endpoint ?? "",
          firstTokenAt: NaN,
        });
        break;
      case "request-retried": {
        const open = this.#open.get(input.requestId);
        if (open !== undefined) open.endpoint = endpoint ?? "";
        break;
      }
      case "first-token": {
        const open = this.#open.get(input.requestId);
        if (open !== undefined && Number.isNaN(open.firstTokenAt)) open.firstTokenAt = input.at;
        break;
      }
      case "request-finished":
        this.#finish(input);
        break;
      case "endpoint-joined":
      case "endpoint-changed":
      case "endpoint-left":
      case "endpoint-cordoned":
      case "endpoint-uncordoned":
      case "profile-changed":
        this.#fleet(input);
        break;
      // What engines did under the policy in force says nothing of another one.
      case "attempt-failed":
      case "load-observed":
      case "progress":
      case "blocks-stored":
      case "blocks-removed":
      case "blocks-cleared":
        break;
    }
  }

  /** The run so far. Requests in flight are counted as left out. */
  close(header: TraceHeader): RecordedRun {
    const started = this.#startedAt ?? 0;
    const ended = this.#ended.toSorted((a, b) => a.at - b.at);
    const conversations = conversationsOf(ended);
    const rows = conversations.flatMap((turns) =>
      turns.map((ended, turn) => ({ ended, turn, before: turns[turn - 1] })),
    );
    const left = {
      ...Object.fromEntries(this.#left),
      ...(this.#open.size === 0 ? {} : { [STILL_OPEN]: this.#open.size }),
    };
    return {
      header,
      workload: rows.map(({ ended, turn, before }, index) => workloadRequest(ended, turn, before, index, started)),
      observed: rows.map(({ ended }) => observedOf(ended)),
      endpoints: [...this.endpoints.values()],
      fleetEvents: this.#fleetEvents.map((event) => ({ ...event, at: event.at - started })),
      left,
    };
  }

  #finish(end: RequestFinished): void {
    const open = this.#open.get(end.requestId);
    if (open === undefined) return this.leave("its arrival is not in the trace");
    this.#open.delete(end.requestId);
    if (end.outcome === "refused") return this.leave("refused");
    if (end.outputTokens === undefined || end.outputTokens < 1)
      return this.leave(`${end.outcome} without a known answer length`);
    this.#ended.push({ ...open, endAt: end.at, end });
    if (this.#ended.length > this.#requestsMax) this.#forget();
  }

  /** Lets the oldest quarter go, and with it the fleet's history up to there. */
  #forget(): void {
    this.#ended.splice(0, this.#ended.length >> 2);
    this.#startedAt = this.#ended.reduce((least, { at }) => Math.min(least, at), Infinity);
    const passed = this.#fleetEvents.filter(({ at }) => at <= this.#startedAt!);
    this.#fleetEvents.splice(0, passed.length);
    for (const event of passed) this.#standing(event);
  }

  /** Before the first request it is how things stand; after it, something that happens. */
  #fleet(event: FleetEvent): void {
    if (this.#startedAt === undefined) this.#standing(event);
    // A scrape that learnt an endpoint's size changes nothing in a simulation that has its engine's.
    else if (event.kind !== "endpoint-changed") this.#fleetEvents.push(event);
  }

  #standing(event: FleetEvent): void {
    if (event.kind === "endpoint-joined" || event.kind === "endpoint-changed") {
      this.endpoints.set(event.endpoint.id, event.endpoint);
    } else if (event.kind === "endpoint-left") this.endpoints.delete(event.endpoint);
  }
}

/**
 * Conversations in order of their first turn, their turns in order. A turn that came before its predecessor's end cannot
 * wait for it: it starts a conversation of its own, at its recorded time.
 */
function conversationsOf(ended: readonly Ended[]): Ended[][] {
  const sessions = new SessionInference();
  const current = new Map<string, Ended[]>();
  const conversations: Ended[][] = [];
  for (const one of ended) {
    const session = sessions.sessionOf(one.route);
    const turns = session === "" ? undefined : current.get(session);
    const last = turns?.at(-1);
    if (turns !== undefined && last !== undefined && last.endAt <= one.at) {
      turns.push(one);
      continue;
    }
    const begun = [one];
    conversations.push(begun);
    if (turns === undefined) current.set(session, begun);
  }
  return conversations;
}

function workloadRequest(
  { route, at, end }: Ended,
  turn: number,
  before: Ended | undefined,
  index: number,
  started: Micros,
): WorkloadRequest {
  return {
    index,
    arrivalMicros: at - started,
    // A name of its own: a client's session may stand for several conversations here.
    session: `conversation_${index - turn}`,
    turn,
    parent: undefined,
    joins: [],
    thinkMicros: before === undefined ? undefined : at - before.endAt,
    promptTokens: Math.max(1, end.promptTokens ?? route.promptTokens),
    outputTokens: end.outputTokens ?? 1,
    blockIds: blockIds(route),
    blockTokens: route.blocks.blockTokens,
    text: undefined,
    tokenIds: undefined,
    tenant: route.tenant,
    sloClass: route.sloClass,
    model: route.model,
  };
}

/** 53 bits of each chained hash: equal ids are equal content, what came before included. */
function blockIds({ blocks: { lanes, length } }: RouteRequest): Float64Array {
  const ids = new Float64Array(length);
  for (let i = 0; i < length; i++) ids[i] = (lanes[2 * i]! >>> 0) * 0x20_0000 + (lanes[2 * i + 1]! >>> 11);
  return ids;
}

function observedOf({ at, endAt, end, firstTokenAt, endpoint }: Ended): Observed {
  return {
    endpoint,
    ok: end.outcome === "ok",
    ttftMicros: firstTokenAt - at,
    e2eMicros: endAt - at,
    outputTokens: end.outputTokens ?? NaN,
    cachedTokens: end.cachedTokens ?? NaN,
  };
}
