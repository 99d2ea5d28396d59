import type { Observed } from "./observed.ts";
import type { Endpoint } from "#core/endpoint/endpoint.ts";
import type {
  AnswerKnown,
  FirstToken,
  Input,
  RequestArrived,
  RequestFinished,
  RequestReleased,
  RequestRetried,
} from "#core/input/input.ts";
import type { PrefillFinished } from "#core/request/prefill-input.ts";
import { isStageInput, type StageInput, stepOf } from "#core/request/stage-inputs.ts";
import { RecentMap } from "#core/base/recent-map.ts";
import type { Micros } from "#core/base/units.ts";
import type { FleetEvent } from "#sim/setting/simulation-options.ts";
import type { TraceHeader, TraceItem } from "#trace/codec/record.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { BlockSizes } from "./block-sizes.ts";
import { type Conversations, conversationsOf } from "./conversations.ts";
import { type RecordedEnd, leftOutReason, type Open, workloadRequest } from "./ended-request.ts";
import { followStandby } from "./follow-standby.ts";
import { FleetHistory } from "./fleet-history.ts";
import { LastRun } from "./last-run.ts";
import { ScrapePace } from "./scrape-pace.ts";
import { tokensOfEach } from "#core/latency/latency-model.ts";
import { NOT_WHOLE } from "./uncompared-reason.ts";

/** A trace as a simulation can use it: its exogenous part as a workload, and what was observed beside it. */
export interface RecordedRun {
  readonly header: TraceHeader;
  readonly workload: readonly WorkloadRequest[];
  /** Same order as the workload. */
  readonly observed: readonly Observed[];
  /** Their ids in the trace, in the same order; absent where none was read. */
  readonly requestIds?: readonly string[];
  /** Endpoints that were there before the first request. */
  readonly endpoints: readonly Endpoint[];
  /** What became of the fleet after it, on the workload's clock; below 0, as it was from the beginning. */
  readonly fleetEvents: readonly FleetEvent[];
  /** Time between two scrapes of an endpoint; absent where the trace does not show it. */
  readonly scrapeMicros?: Micros;
  /** Requests that are not in the workload, by reason. */
  readonly left: Readonly<Record<string, number>>;
  /** Changes of the fleet that a window had no room for: they count as having happened before it. */
  readonly fleetEventsMerged?: number;
}

/** The smallest window remembers so many requests in flight; a larger one, one for so many bytes. */
const OPEN_MIN = 10_000;
const OPEN_BYTES = 4096;
/** About what a request takes beside its blocks' hashes. */
const REQUEST_BYTES = 1024;
/** Changes of the fleet that a window remembers; a fleet without traffic may change for ever. */
const FLEET_EVENTS_MAX = 10_000;

/**
 * Reads a trace's last run with a request; those of runs before it are counted. A request whose end or answer length is
 * not known cannot be simulated and is counted in `left`; so is one that was refused. A turn of a conversation that came
 * after its predecessor's end is closed loop with the think time seen.
 */
export async function readRecordedRun(
  items: AsyncIterable<TraceItem>,
  conversations: Conversations = "inferred",
): Promise<RecordedRun> {
  const runs = new LastRun<{ readonly header: TraceHeader; readonly book: RunBook }>();
  for await (const item of items) {
    if (item.kind === "run") {
      const book = new RunBook();
      const before = runs.used;
      const arrived = before?.book.arrived ?? 0;
      if (arrived > 0) book.leave("of an earlier run of the recorder", arrived);
      for (const endpoint of item.header.endpoints) book.endpoints.set(endpoint.id, endpoint);
      runs.begin({ header: item.header, book });
      continue;
    }
    runs.take(item);
    const book = runs.now?.book;
    if (item.kind === "gap") {
      // Damage is in the reader's report.
      if (item.damage === undefined) book?.leave("dropped by the recorder", item.dropped);
    } else book?.take(item.input, item.decision?.kind === "routed" ? item.decision.endpoint : undefined);
  }
  const { chosen } = runs;
  if (chosen === undefined) throw new Error("expected a trace with a header, got none");
  return chosen.book.close(chosen.header, conversations);
}

/** Collects a run as its items come; with a window, only its latest requests. */
export class RunBook {
  readonly #fleet: FleetHistory;
  readonly #pace = new ScrapePace();
  readonly #open = new Map<string, Open>();
  readonly #ended: RecordedEnd[] = [];
  /** Those whose answers follow their ends. */
  readonly #awaited = new RecentMap<string, RecordedEnd>(OPEN_MIN);
  /** Why requests are left out that were asked anew. */
  readonly #anew = new RecentMap<string, string>(OPEN_MIN);
  readonly #left = new Map<string, number>();
  readonly #requestsMax: number;
  /** Requests in flight that a window remembers. */
  readonly #openMax: number;
  readonly #bytesMax: number;
  /** About what those that ended take. */
  #bytes = 0;
  #keptSince: Micros = Infinity;
  #startedAt: Micros | undefined;

  /** `bytesMax`: about what a window may take that is asked to keep more than its latest requests. */
  constructor(requestsMax = Infinity, bytesMax = 0) {
    this.#requestsMax = requestsMax;
    this.#bytesMax = bytesMax;
    this.#openMax = Math.max(OPEN_MIN, requestsMax, bytesMax / OPEN_BYTES);
    this.#fleet = new FleetHistory(requestsMax === Infinity ? Infinity : FLEET_EVENTS_MAX);
  }

  /** Endpoints that were there before the first request. */
  get endpoints(): Map<string, Endpoint> {
    return this.#fleet.endpoints;
  }

  /** Requests that could be simulated. */
  get requests(): number {
    return this.#ended.length;
  }

  /** Requests that came, earlier runs included. */
  get arrived(): number {
    return this.#ended.length + this.#open.size + [...this.#left.values()].reduce((sum, count) => sum + count, 0);
  }

  /** A window keeps what ended from then on as well, as far as there is room for it. */
  keepSince(at: Micros): void {
    this.#keptSince = at;
  }

  leave(reason: string, count = 1): void {
    this.#left.set(reason, (this.#left.get(reason) ?? 0) + count);
  }

  take(input: Input, endpoint: string | undefined): void {
    if (isStageInput(input)) return this.#ofStage(input, endpoint);
    switch (input.kind) {
      case "request-arrived":
        this.#arrived(input, endpoint ?? "");
        break;
      case "request-retried":
      case "request-moved":
        this.#sentAgain(input, (input.kind === "request-moved" ? input.endpoint : endpoint) ?? "", 1);
        break;
      case "request-released": // It waited in the gateway until now.
        if (endpoint !== undefined) this.#released(input, endpoint);
        break;
      case "first-token":
        this.#firstToken(input);
        break;
      case "prefill-finished":
        this.#prefilled(input);
        break;
      case "request-finished":
        return this.#finish(input);
      case "answer-known":
        this.#answer(input);
        break;
      case "endpoint-joined":
      case "endpoint-changed":
      case "endpoint-left":
      case "endpoint-cordoned":
      case "endpoint-uncordoned":
      case "endpoint-checked":
      case "endpoint-slept":
      case "endpoint-suspended":
      case "endpoint-resumed":
      case "profile-changed":
      case "policy-changed":
      case "rollout-planned":
      case "rollout-step":
      case "rollout-removed":
      case "rollout-restored":
      case "sessions-restored":
        // Before the first request it is how things stand; after it, something that happens.
        this.#fleet[this.#startedAt === undefined ? "stand" : "add"](input);
        break;
      case "block-size-changed":
        return this.#fleet.resizeBlocks(input.blockTokens);
      case "load-observed":
        return this.#pace.observe(input.at, input.endpoint);
      case "attempt-failed": // What engines did under the policy in force is no evidence about another one.
      case "prefill-failed":
      case "transfer-failed":
      case "rollout-look":
      case "rollout-predicted":
      case "rollout-shared":
      case "progress":
      case "blocks-stored":
      case "blocks-removed":
      case "blocks-cleared":
      // Whoever asks about the traffic of several gateways needs the traces of all of them.
      case "peer-reported":
      case "peer-left":
      case "kv-events-alive":
      case "kv-events-missed":
      case "kv-events-lost":
        break;
    }
  }

  #ofStage(input: StageInput, endpoint: string | undefined): void {
    const { requestId } = input;
    const step = stepOf(input);
    if (step.kind === "went-on") this.#sentAgain(input, endpoint ?? "", 1);
    else if (step.kind !== "asked-anew") followStandby(this.#open.get(requestId), step, input.at, endpoint);
    else if (endpoint !== undefined && this.#open.delete(requestId)) this.#anew.set(requestId, step.leftOut);
  }

  #arrived({ at, request: route, heldMicros = 0 }: RequestArrived, endpoint: string): void {
    this.#startedAt ??= at;
    if (this.#open.size >= this.#openMax) this.#forgetOpen();
    const before = { prefilledAt: NaN, firstTokenAt: NaN, attempts: 1, sentAt: at, queuedMicros: 0, heldMicros };
    this.#open.set(route.id, { route, at, endpoint, ...before });
  }

  #firstToken({ at, requestId }: FirstToken): void {
    const open = this.#open.get(requestId);
    if (open !== undefined && Number.isNaN(open.firstTokenAt)) open.firstTokenAt = at;
  }

  #prefilled({ at, requestId }: PrefillFinished): void {
    const open = this.#open.get(requestId);
    if (open !== undefined) open.prefilledAt = at;
  }

  #released(input: RequestReleased, endpoint: string): void {
    const open = this.#open.get(input.requestId);
    if (open !== undefined) open.queuedMicros += input.at - open.sentAt;
    this.#sentAgain(input, endpoint, 0);
  }

  #sentAgain({ at, requestId }: Pick<RequestRetried, "at" | "requestId">, endpoint: string, attempts: number): void {
    const open = this.#open.get(requestId);
    if (open === undefined) return;
    open.endpoint = endpoint;
    open.attempts += attempts;
    open.sentAt = at;
  }

  /** The run so far. Requests in flight are counted as left out. */
  close(header: TraceHeader, kind: Conversations = "inferred"): RecordedRun {
    const ended = this.#ended.toSorted((a, b) => a.at - b.at);
    // Of a window, a long answer may have begun before all that was let go in the meantime.
    const started = Math.min(this.#startedAt ?? 0, ended[0]?.at ?? Infinity);
    const conversations = conversationsOf(ended, kind);
    const blocks = new BlockSizes(ended);
    const rows = conversations.flatMap((turns) =>
      turns.map((ended, turn) => ({ ended, turn, before: turns[turn - 1] })),
    );
    const open = this.#open.size === 0 ? {} : { "still in flight at the end of the trace": this.#open.size };
    const left = { ...Object.fromEntries(this.#left), ...open };
    return {
      header: this.#fleet.header(header),
      ...this.#pace.found,
      workload: rows.map(({ ended, turn, before }, index) => ({
        ...workloadRequest(ended, turn, before, index, started),
        blockTokens: blocks.tokensOf(ended.route),
      })),
      observed: rows.map(({ ended }) => observedOf(ended)),
      requestIds: rows.map(({ ended }) => ended.route.id),
      endpoints: [...this.endpoints.values()],
      fleetEvents: this.#fleet.eventsFrom(started),
      left,
      ...(this.#fleet.merged > 0 && { fleetEventsMerged: this.#fleet.merged }),
    };
  }

  #finish(end: RequestFinished): void {
    const open = this.#open.get(end.requestId);
    const anew = this.#anew.get(end.requestId);
    if (anew !== undefined) {
      this.#anew.delete(end.requestId);
      return this.leave(anew);
    }
    if (open === undefined) return this.leave("its arrival is not in the trace");
    this.#open.delete(end.requestId);
    const why = leftOutReason(open, end);
    if (why !== undefined) return this.leave(why);
    const ended = { ...open, endAt: end.at, end, answerHashes: end.answerHashes };
    this.#ended.push(ended);
    this.#bytes += bytesOf(ended);
    if (end.answerFollows === true) this.#awaited.set(end.requestId, ended);
    if (this.#ended.length <= this.#requestsMax) return;
    const oldest = this.#ended.length >> 2;
    if (this.#bytes > this.#bytesMax || this.#ended[oldest - 1]!.endAt < this.#keptSince) this.#forget(oldest);
  }

  #answer({ requestId, answerHashes }: AnswerKnown): void {
    const ended = this.#awaited.get(requestId);
    this.#awaited.delete(requestId);
    if (ended !== undefined) ended.answerHashes = answerHashes;
  }

  /** Where records were dropped, ends may never come: the oldest one makes room. */
  #forgetOpen(): void {
    for (const id of this.#open.keys()) {
      this.#open.delete(id);
      this.leave("its end is not in the trace");
      return;
    }
  }

  /** Lets the oldest ones go, and with them the fleet's history up to there. */
  #forget(count: number): void {
    for (const ended of this.#ended.splice(0, count)) this.#bytes -= bytesOf(ended);
    this.#startedAt = this.#ended.reduce((least, { at }) => Math.min(least, at), Infinity);
    this.#fleet.advanceTo(this.#startedAt);
  }
}

function bytesOf({ route: { blocks, tokensByPrompt = [] } }: RecordedEnd): number {
  return REQUEST_BYTES + blocks.hashes.byteLength + 8 * tokensByPrompt.length;
}

function observedOf(ended: RecordedEnd): Observed {
  const { at, endAt, end, prefilledAt, firstTokenAt, endpoint, attempts, sentAt, queuedMicros, heldMicros } = ended;
  const { outputTokens = NaN } = end;
  return {
    endpoint,
    ok: end.outcome === "ok",
    ...(end.outcome !== "ok" && { uncompared: NOT_WHOLE[end.outcome] }),
    ttftMicros: firstTokenAt - at,
    e2eMicros: endAt - at,
    outputTokens: tokensOfEach(outputTokens, ended.route.sequences),
    // Of several prompts vLLM reports those of the last one alone.
    cachedTokens: ended.route.tokensByPrompt === undefined ? (end.cachedTokens ?? NaN) : NaN,
    attempts,
    retriedMicros: sentAt - at,
    ...(firstTokenAt > prefilledAt && { handoverMicros: firstTokenAt - prefilledAt }),
    ...(queuedMicros > 0 && { queuedMicros }),
    ...(heldMicros > 0 && { heldMicros }),
  };
}
