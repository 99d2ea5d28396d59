import { isStageInput, stepOf } from "#core/request/stage-inputs.ts";
import type { StageStep } from "#core/request/stage-step.ts";
import type { Input, RequestFinished } from "#core/input/input.ts";
import { RecentMap } from "#core/base/recent-map.ts";
import type { RouteRequest } from "#core/request/request.ts";
import { SessionInference } from "#core/session/session-inference.ts";
import type { Micros } from "#core/base/units.ts";
import { promptShares } from "../prompt-shares.ts";
import type { TraceItem } from "../codec/record.ts";
import type { Tally } from "./tally.ts";
import type { TrafficRequest } from "./traffic.ts";

/** Requests that may wait for the end of the one before them. */
const WAITING_MAX = 100_000;
/** Conversations whose last turn is remembered; the longest silent one is forgotten, and its next turn starts anew. */
const CONVERSATIONS_MAX = 262_144;

interface Open {
  /** Of the model that answered. */
  route: RouteRequest;
  readonly at: Micros;
  /** Wall time of `at`, in microseconds since 1970. */
  readonly wallMicros: number;
  endpoint: string;
  /** A second endpoint that was asked. */
  standby?: string;
  firstTokenAt: Micros;
  end: RequestFinished | undefined;
}

interface Conversation {
  readonly name: string;
  readonly turn: number;
  readonly endWallMicros: number;
}

/**
 * The requests of a recorded trace in order of arrival, with what became of them. A request whose end or answer length
 * is not in the trace is counted in `left`. Conversations are those that clients named, else those whose prompts continue
 * one another; a turn that came before its predecessor's end starts one of its own. Arrivals are microseconds from the
 * first one's. At most WAITING_MAX requests are in memory.
 */
export async function* recordedTraffic(items: AsyncIterable<TraceItem>, left: Tally): AsyncGenerator<TrafficRequest> {
  const line = new ArrivalLine(left);
  for await (const item of items) {
    if (item.kind === "run") yield* line.begin(item.header.startWallMicros);
    else if (item.kind === "record")
      yield* line.take(item.input, item.decision?.kind === "routed" ? item.decision.endpoint : "");
  }
  yield* line.flush();
}

/** Requests wait here, in order of arrival, until it is known how they ended. */
/** Inputs after which a request may be at another endpoint. */
const SENT_AGAIN: ReadonlySet<Input["kind"]> = new Set(["request-retried", "request-released"]);

class ArrivalLine {
  readonly #left: Tally;
  readonly #open = new Map<string, Open>();
  #line: Open[] = [];
  /** Position of the first request of the line that is not given out. */
  #head = 0;
  #sessions = new SessionInference();
  #conversations = new RecentMap<string, Conversation>(CONVERSATIONS_MAX);
  #startWallMicros = 0;
  #originMicros: number | undefined;
  #begun = 0;
  #index = 0;

  constructor(left: Tally) {
    this.#left = left;
  }

  *begin(startWallMicros: number): Generator<TrafficRequest> {
    yield* this.flush();
    this.#startWallMicros = startWallMicros;
    this.#sessions = new SessionInference();
    this.#conversations = new RecentMap<string, Conversation>(CONVERSATIONS_MAX);
  }

  *take(input: Input, endpoint: string): Generator<TrafficRequest> {
    if (input.kind === "request-arrived") {
      this.#arrive(input.request, input.at, endpoint);
      if (this.#line.length - this.#head > WAITING_MAX) yield* this.#giveUpFirst();
    } else if (SENT_AGAIN.has(input.kind) && "requestId" in input) {
      const open = this.#open.get(input.requestId);
      if (open !== undefined && endpoint !== "") open.endpoint = endpoint;
    } else if (isStageInput(input)) {
      const open = this.#open.get(input.requestId);
      if (open !== undefined) takeStep(open, stepOf(input), endpoint);
    } else if (input.kind === "first-token") {
      const open = this.#open.get(input.requestId);
      if (open !== undefined && Number.isNaN(open.firstTokenAt)) open.firstTokenAt = input.at;
    } else if (input.kind === "request-finished") {
      const open = this.#open.get(input.requestId);
      this.#open.delete(input.requestId);
      if (open === undefined) this.#left.count("its arrival is not in the trace");
      else open.end = input;
      yield* this.#ended();
    }
  }

  /** Gives out all that ended; what did not is counted. */
  *flush(): Generator<TrafficRequest> {
    for (; this.#head < this.#line.length; this.#head++) yield* this.#give(this.#line[this.#head]!);
    this.#line = [];
    this.#head = 0;
    this.#open.clear();
  }

  #arrive(route: RouteRequest, at: Micros, endpoint: string): void {
    const wallMicros = this.#startWallMicros + at;
    this.#originMicros ??= wallMicros;
    const open = { route, at, wallMicros, endpoint, firstTokenAt: NaN, end: undefined };
    this.#open.set(route.id, open);
    this.#line.push(open);
  }

  *#ended(): Generator<TrafficRequest> {
    while (this.#line[this.#head]?.end !== undefined) yield* this.#give(this.#line[this.#head++]!);
    if (this.#head < 1024 || 2 * this.#head < this.#line.length) return;
    this.#line = this.#line.slice(this.#head);
    this.#head = 0;
  }

  *#giveUpFirst(): Generator<TrafficRequest> {
    const first = this.#line[this.#head++]!;
    this.#open.delete(first.route.id);
    yield* this.#give(first);
    yield* this.#ended();
  }

  *#give(open: Open): Generator<TrafficRequest> {
    const { end, route } = open;
    const outputTokens = end?.outputTokens ?? 0;
    if (end === undefined) this.#left.count("its end is not in the trace");
    else if (end.outcome === "refused") this.#left.count("refused");
    else if (outputTokens < 1) this.#left.count(`${end.outcome} without a known answer length`);
    else yield this.#request(open, end, route, outputTokens);
  }

  #request(open: Open, end: RequestFinished, route: RouteRequest, outputTokens: number): TrafficRequest {
    const { conversation, thinkMicros } = this.#turn(open, end.at - open.at);
    const promptTokens = Math.max(1, Math.round(end.promptTokens ?? route.promptTokens));
    const { sequences, tokensByPrompt } = route;
    const request = {
      index: this.#index++,
      arrivalMicros: Math.max(0, open.wallMicros - (this.#originMicros ?? 0)),
      session: conversation.name,
      turn: conversation.turn,
      parent: undefined,
      joins: [],
      thinkMicros,
      promptTokens,
      outputTokens,
      ...(sequences > 1 && { sequences }),
      ...(tokensByPrompt && { tokensByPrompt: promptShares(promptTokens, tokensByPrompt) }),
      blockIds: blockIds(route),
      blockTokens: route.blocks.blockTokens,
      text: undefined,
      tokenIds: undefined,
      tenant: route.tenant,
      sloClass: route.sloClass,
      model: route.model,
    };
    const observed = {
      endpoint: open.endpoint,
      outcome: end.outcome,
      ttftMicros: open.firstTokenAt - open.at,
      e2eMicros: end.at - open.at,
      cachedTokens: end.cachedTokens ?? NaN,
    };
    return { id: route.id, request, observed };
  }

  #turn(open: Open, e2eMicros: Micros): { conversation: Conversation; thinkMicros: Micros | undefined } {
    const session = this.#sessions.sessionOf(open.route);
    const endWallMicros = open.wallMicros + e2eMicros;
    const before = session === "" ? undefined : this.#conversations.get(session);
    const follows = before !== undefined && before.endWallMicros <= open.wallMicros;
    const conversation = follows
      ? { name: before.name, turn: before.turn + 1, endWallMicros }
      : { name: `conversation_${this.#begun++}`, turn: 0, endWallMicros };
    if (session !== "") this.#conversations.set(session, conversation);
    return { conversation, thinkMicros: follows ? open.wallMicros - before.endWallMicros : undefined };
  }
}

/** A second endpoint has it too, or it is known which of both answers; another one goes on, or makes another answer. */
function takeStep(open: Open, step: StageStep, endpoint: string): void {
  if (step.kind === "stood-by") open.standby = endpoint;
  else if (step.kind === "settled" && step.winner === "second") open.endpoint = open.standby ?? open.endpoint;
  else if (step.kind === "went-on" && endpoint !== "") open.endpoint = endpoint;
  else if (step.kind === "asked-anew" && endpoint !== "") Object.assign(open, { route: step.request, endpoint });
}

/** 53 bits of each chained hash: equal ids are equal content, what came before included. */
function blockIds({ blocks: { hashes, length } }: RouteRequest): Float64Array {
  const ids = new Float64Array(length);
  for (let i = 0; i < length; i++) ids[i] = (hashes[2 * i]! >>> 0) * 0x20_0000 + (hashes[2 * i + 1]! >>> 11);
  return ids;
}
