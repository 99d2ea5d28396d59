import type { Routed } from "../input/decision.ts";
import type { EndpointId } from "../endpoint/endpoint.ts";
import type { Input } from "../input/input.ts";
import type { ForecastTrial } from "../latency/forecast-trial.ts";
import type { LatencyModel, Situation } from "../latency/latency-model.ts";
import { RecentRequests } from "../base/request-table.ts";
import { attentionPairs } from "../latency/batch-room.ts";
import { isStageInput, type StageInput, stepOf } from "../request/stage-inputs.ts";
import type { RouteRequest } from "../request/request.ts";
import type { Micros } from "../base/units.ts";

/** Requests followed at once; beyond that the oldest are not learned from. */
const REQUESTS_MAX = 100_000;
/** A pace over fewer tokens is mostly chance. */
const OUTPUT_TOKENS_MIN = 8;

interface Followed {
  readonly endpoint: EndpointId;
  /** The endpoint's, which stays while anybody is there. */
  readonly aboard: Aboard;
  readonly promptTokens: number;
  readonly newTokens: number;
  readonly pairs: number;
  readonly situation: Situation;
  /** Requests of others there when it was sent. */
  readonly foreign: number;
  readonly sentAt: Micros;
  /** What its first token was expected to take then, by the model and by the endpoint's moving average. */
  readonly forecast: Micros;
  readonly average: Micros | undefined;
  firstTokenAt: Micros | undefined;
  /** What had been there until then. */
  before: ReturnType<Aboard["until"]> | undefined;
}

/**
 * Requests from their decision to their end, so that a LatencyModel, each endpoint's own, learns from the times that
 * they took.
 */
export class UnderWay {
  readonly #modelOf: (endpoint: EndpointId) => LatencyModel;
  readonly #trial: ForecastTrial;
  readonly #followed = new RecentRequests<Followed>(REQUESTS_MAX);
  readonly #aboard = new Map<EndpointId, Aboard>();

  constructor(modelOf: (endpoint: EndpointId) => LatencyModel, trial: ForecastTrial) {
    this.#modelOf = modelOf;
    this.#trial = trial;
  }

  /** What of it is there; undefined for nothing. */
  at(endpoint: EndpointId): Aboard | undefined {
    return this.#aboard.get(endpoint);
  }

  /** The request was routed into `situation`, where others than this router have `foreign` requests. */
  began(
    { at, endpoint, requestId }: Routed,
    { promptTokens }: RouteRequest,
    situation: Situation,
    foreign: number,
  ): void {
    this.#ended(at, requestId);
    let aboard = this.#aboard.get(endpoint);
    if (aboard === undefined) this.#aboard.set(endpoint, (aboard = new Aboard(at)));
    const { newTokens } = situation;
    const pairs = attentionPairs(promptTokens, newTokens);
    aboard.sent(at, promptTokens, pairs);
    aboard.queuedTokens += newTokens;
    this.#followed.set(requestId, {
      endpoint,
      aboard,
      promptTokens,
      newTokens,
      pairs,
      situation,
      foreign,
      sentAt: at,
      forecast: this.#modelOf(endpoint).ttftMicros(endpoint, situation),
      average: this.#trial.average(endpoint),
      firstTokenAt: undefined,
      before: undefined,
    });
  }

  observe(input: Input): void {
    switch (input.kind) {
      case "first-token":
        return this.#firstToken(input.at, input.requestId);
      case "request-finished":
        if (input.outcome === "ok") this.#answered(input.at, input.requestId, input.outputTokens ?? 0);
        return this.#ended(input.at, input.requestId);
      case "attempt-failed":
      // It is answered by an endpoint that nobody chose.
      case "request-moved":
        this.#ended(input.at, input.requestId);
        break;
      default:
        if (isStageInput(input)) this.#ofStage(input);
    }
  }

  #ofStage(input: StageInput): void {
    const step = stepOf(input);
    if (step.kind === "settled" && step.winner === "second") this.#ended(input.at, input.requestId);
  }

  #firstToken(at: Micros, requestId: string): void {
    const one = this.#followed.get(requestId);
    if (one === undefined || one.firstTokenAt !== undefined) return;
    const { endpoint, aboard, promptTokens, newTokens, pairs, situation, sentAt, forecast, average } = one;
    one.firstTokenAt = at;
    aboard.computed(at, promptTokens, newTokens, pairs);
    aboard.queuedTokens -= newTokens;
    one.before = aboard.until(at);
    this.#trial.add(endpoint, at, at - sentAt, forecast, average);
    this.#modelOf(endpoint).learnTtft(endpoint, at, situation, at - sentAt);
  }

  #answered(at: Micros, requestId: string, outputTokens: number): void {
    const one = this.#followed.get(requestId);
    if (one?.firstTokenAt === undefined || one.before === undefined || outputTokens < OUTPUT_TOKENS_MIN) return;
    const { endpoint, before, firstTokenAt, foreign, promptTokens } = one;
    const now = one.aboard.until(at);
    const steps = outputTokens - 1;
    const micros = at - firstTokenAt;
    if (micros <= 0) return;
    const requests = foreign + (now.requestMicros - before.requestMicros) / micros;
    const prompts = foreign * promptTokens + (now.promptTokenMicros - before.promptTokenMicros) / micros;
    const company = {
      requests,
      contextTokens: prompts + (requests * outputTokens) / 2,
      prefillPerStep: (now.computedTokens - before.computedTokens) / steps,
    };
    this.#modelOf(endpoint).learnTpot(endpoint, at, company, micros / steps);
  }

  #ended(at: Micros, requestId: string): void {
    const one = this.#followed.get(requestId);
    if (one === undefined) return;
    this.#followed.delete(requestId);
    const { aboard } = one;
    aboard.left(at, one.promptTokens, one.pairs, one.firstTokenAt);
    if (one.firstTokenAt === undefined) aboard.queuedTokens -= one.newTokens;
    if (aboard.requests === 0) this.#aboard.delete(one.endpoint);
  }
}

/**
 * What was aboard until some time, added up over time, so that the difference between two times over the time between
 * them is the mean.
 */
interface AboardSum {
  readonly requestMicros: number;
  readonly promptTokenMicros: number;
  readonly computedTokens: number;
}

/** The requests of one endpoint, and those of them whose answers are being made. */
export class Aboard {
  requests = 0;
  promptTokens = 0;
  /** Attention's pairs of prompts that are not computed yet. */
  queuedPairs = 0;
  /** Of the same prompts, tokens that were not found in the cache. */
  queuedTokens = 0;
  #answering = 0;
  #answeringPromptTokens = 0;
  /** Since when some prompt has been computed there without a first token. */
  #computingSince: Micros = 0;
  /** Of those whose answers are being made, when that began, added up from `#bornAt` on. */
  #beganMicros = 0;
  readonly #bornAt: Micros;
  #at: Micros;
  #requestMicros = 0;
  #promptTokenMicros = 0;
  #computedTokens = 0;

  constructor(at: Micros) {
    this.#bornAt = at;
    this.#at = at;
  }

  /** Mean time since the answers began that are being made; undefined where none is. */
  ageMicros(at: Micros): Micros | undefined {
    return this.#answering === 0 ? undefined : at - this.#bornAt - this.#beganMicros / this.#answering;
  }

  /** For how long the prompts have been computed that are; 0 where there are none. */
  computingMicros(at: Micros): Micros {
    return this.requests === this.#answering ? 0 : Math.max(0, at - this.#computingSince);
  }

  sent(at: Micros, promptTokens: number, pairs: number): void {
    if (this.requests === this.#answering) this.#computingSince = at;
    this.requests++;
    this.queuedPairs += pairs;
    this.promptTokens += promptTokens;
  }

  /** A prompt is computed, `newTokens` of it there and then, and its answer begins. */
  computed(at: Micros, promptTokens: number, newTokens: number, pairs: number): void {
    this.#until(at);
    this.queuedPairs -= pairs;
    this.#answering++;
    this.#computingSince = at;
    this.#beganMicros += at - this.#bornAt;
    this.#answeringPromptTokens += promptTokens;
    this.#computedTokens += newTokens;
  }

  /** `firstTokenAt` is undefined where its answer had not begun. */
  left(at: Micros, promptTokens: number, pairs: number, firstTokenAt: Micros | undefined): void {
    this.#until(at);
    this.requests--;
    this.promptTokens -= promptTokens;
    if (firstTokenAt === undefined) {
      this.queuedPairs -= pairs;
      return;
    }
    this.#answering--;
    this.#beganMicros -= firstTokenAt - this.#bornAt;
    this.#answeringPromptTokens -= promptTokens;
  }

  until(at: Micros): AboardSum {
    this.#until(at);
    return {
      requestMicros: this.#requestMicros,
      promptTokenMicros: this.#promptTokenMicros,
      computedTokens: this.#computedTokens,
    };
  }

  #until(at: Micros): void {
    const elapsed = Math.max(0, at - this.#at);
    this.#requestMicros += elapsed * this.#answering;
    this.#promptTokenMicros += elapsed * this.#answeringPromptTokens;
    this.#at = Math.max(at, this.#at);
  }
}
