import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import { BlockSharing } from "./block-sharing.ts";
import { Quantiles, type QuantileFigures } from "./quantiles.ts";
import { Tally } from "./tally.ts";
import type { TrafficRequest } from "./traffic.ts";

/** Conversations whose turns are counted; those that begin beyond it are counted alone. */
const CONVERSATIONS_MAX = 2_000_000;
/** Names of tenants, models and endpoints that are kept apart. */
const NAMES_MAX = 10_000;

export interface TrafficFigures {
  readonly requests: number;
  /** From the first to the last arrival that is known. */
  readonly spanMicros: Micros;
  readonly requestsPerSecond: number;
  /** Most arrivals within one second of the clock. */
  readonly requestsPerSecondMax: number;
  /** Follow-up turns that come when the one before has ended, whose arrival the trace does not hold. */
  readonly closedLoop: number;
  readonly promptTokens: QuantileFigures | undefined;
  readonly outputTokens: QuantileFigures | undefined;
  readonly cachedTokens: QuantileFigures | undefined;
  readonly ttftMicros: QuantileFigures | undefined;
  readonly e2eMicros: QuantileFigures | undefined;
  readonly thinkMicros: QuantileFigures | undefined;
  /** Share of prompt blocks that an earlier prompt had; NaN where the trace has no blocks. */
  readonly sharedBlocks: number;
  readonly sharedBlocksSampled: number;
  readonly conversations: number;
  readonly conversationsNotCounted: number;
  readonly turns: QuantileFigures | undefined;
  readonly outcomes: readonly (readonly [string, number])[];
  readonly endpoints: readonly (readonly [string, number])[];
  readonly tenants: readonly (readonly [string, number])[];
  readonly models: readonly (readonly [string, number])[];
}

/** What a traffic is like, in bounded memory. */
export class TrafficSummary {
  readonly #prompt = new Quantiles();
  readonly #output = new Quantiles();
  readonly #cached = new Quantiles();
  readonly #ttft = new Quantiles();
  readonly #e2e = new Quantiles();
  readonly #think = new Quantiles();
  readonly #sharing = new BlockSharing();
  readonly #turns = new Map<string, number>();
  readonly #outcomes = new Tally();
  readonly #endpoints = new Tally();
  readonly #tenants = new Tally();
  readonly #models = new Tally();
  #requests = 0;
  #closedLoop = 0;
  #firstMicros = Infinity;
  #lastMicros = -Infinity;
  #second = -1;
  #inSecond = 0;
  #inSecondMax = 0;
  #notCounted = 0;

  add({ request, observed }: TrafficRequest): void {
    this.#requests++;
    this.#prompt.add(request.promptTokens);
    this.#output.add(request.outputTokens);
    if (request.thinkMicros !== undefined) this.#think.add(request.thinkMicros);
    if (request.thinkMicros !== undefined && request.arrivalMicros === 0) this.#closedLoop++;
    else this.#arrive(request.arrivalMicros);
    if (request.blockIds !== undefined) this.#sharing.add(request.blockIds);
    this.#converse(request.session);
    countName(this.#tenants, request.tenant);
    countName(this.#models, request.model);
    if (observed === undefined) return;
    this.#cached.add(observed.cachedTokens);
    this.#ttft.add(observed.ttftMicros);
    this.#e2e.add(observed.e2eMicros);
    this.#outcomes.count(observed.outcome);
    countName(this.#endpoints, observed.endpoint);
  }

  figures(): TrafficFigures {
    const turns = new Quantiles();
    for (const count of this.#turns.values()) turns.add(count);
    const spanMicros = Math.max(0, this.#lastMicros - this.#firstMicros);
    const timed = this.#requests - this.#closedLoop;
    return {
      requests: this.#requests,
      spanMicros: Number.isFinite(spanMicros) ? spanMicros : 0,
      requestsPerSecond: spanMicros > 0 && timed > 1 ? ((timed - 1) / spanMicros) * MICROS_PER_SECOND : NaN,
      requestsPerSecondMax: this.#inSecondMax,
      closedLoop: this.#closedLoop,
      promptTokens: this.#prompt.figures(),
      outputTokens: this.#output.figures(),
      cachedTokens: this.#cached.figures(),
      ttftMicros: this.#ttft.figures(),
      e2eMicros: this.#e2e.figures(),
      thinkMicros: this.#think.figures(),
      sharedBlocks: this.#sharing.share,
      sharedBlocksSampled: this.#sharing.sampled,
      conversations: this.#turns.size,
      conversationsNotCounted: this.#notCounted,
      turns: turns.figures(),
      outcomes: this.#outcomes.entries(),
      endpoints: this.#endpoints.entries(),
      tenants: this.#tenants.entries(),
      models: this.#models.entries(),
    };
  }

  #arrive(micros: Micros): void {
    this.#firstMicros = Math.min(this.#firstMicros, micros);
    this.#lastMicros = Math.max(this.#lastMicros, micros);
    const second = Math.floor(micros / MICROS_PER_SECOND);
    this.#inSecond = second === this.#second ? this.#inSecond + 1 : 1;
    this.#second = second;
    this.#inSecondMax = Math.max(this.#inSecondMax, this.#inSecond);
  }

  #converse(session: string): void {
    if (session === "") return;
    const turns = this.#turns.get(session);
    if (turns !== undefined) this.#turns.set(session, turns + 1);
    else if (this.#turns.size < CONVERSATIONS_MAX) this.#turns.set(session, 1);
    else this.#notCounted++;
  }
}

function countName(tally: Tally, name: string): void {
  if (name !== "") tally.count(tally.has(name) || tally.size < NAMES_MAX ? name : "(others)");
}
