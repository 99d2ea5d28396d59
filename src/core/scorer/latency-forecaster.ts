import { ColumnBreakdown } from "../input/breakdown.ts";
import { type Breakdown, type CandidateRow, type Decision, PEER_SEQUENCE, type Routed } from "../input/decision.ts";
import type { Endpoint, EndpointId, Load } from "../endpoint/endpoint.ts";
import { Ewma } from "../endpoint/ewma.ts";
import { newTokens } from "../endpoint/gauge.ts";
import type { Snapshot } from "../endpoint/snapshot.ts";
import type { StepTimes } from "../endpoint/step-times.ts";
import type { Input } from "../input/input.ts";
import {
  attentionPairs,
  batchRoom,
  type LatencyModel,
  ModelSet,
  type Situation,
  type Speeds,
  tokensOfEach,
} from "../latency/latency-model.ts";
import type { Forecast } from "../latency/forecast.ts";
import { ForecastTrial } from "../latency/forecast-trial.ts";
import type { Noted, NotedLoadSource } from "../request/noted.ts";
import type { RouteRequest } from "../request/request.ts";
import { type Micros, MICROS_PER_SECOND } from "../base/units.ts";
import { EndpointWindows, type WindowSum } from "./window-sum.ts";
import { RecentRequests } from "../base/request-table.ts";
import { isStageInput, type StageInput, stepOf } from "../request/stage-inputs.ts";

/** Time constant of the mean length of answers. */
const OUTPUT_TAU_MICROS = 300 * MICROS_PER_SECOND;
/** Over which the rate of prompts at an endpoint is taken. */
const RATE_SECONDS = 10;

/** What it begins with. */
export interface ForecasterOptions extends StepTimes {
  /** Length of an answer until the first was seen. */
  readonly outputTokensGuess: number;
}

/** The same as parameters of a plugin. */
export const FORECASTER_PARAMETERS = {
  outputTokensGuess: { type: "number", default: 256, min: 1, meaning: "length of an answer until the first was seen" },
  stepMicros: { type: "number", default: 8_000, min: 1, meaning: "time of a step, until it is learned" },
  prefillTokenMicros: { type: "number", default: 40, min: 0.001, meaning: "time of a prompt token, until learned" },
  sequenceMicros: { type: "number", default: 20, min: 0, meaning: "time of a sequence in a step, until learned" },
  contextTokenMicros: { type: "number", default: 0.08, min: 0, meaning: "time of a token of context, until learned" },
  stepTokensMax: { type: "integer", default: 8_192, min: 1, meaning: "tokens of a step (max_num_batched_tokens)" },
} as const;

/** What of a candidate a situation follows from, as a decision saw it. */
interface Seen {
  readonly at: Micros;
  readonly endpoint: Endpoint | undefined;
  readonly effectiveLoad: number;
  readonly requestsInFlight: number;
  readonly prefillTokensQueued: number;
  readonly promptTokensInFlight: number;
}

/** What of a candidate is looked up once for many decisions: for as long as it is the same, and so are the `changes`. */
export interface ModelPlace {
  readonly id: EndpointId;
  readonly endpoint: Endpoint;
  readonly changes: number;
  readonly model: LatencyModel;
  readonly aboard: AboardPlace;
  /** Undefined before its first answer. */
  speeds: Speeds | undefined;
  /** Prompt tokens that were sent there lately; undefined before the first. */
  computed: WindowSum | undefined;
}

/** What of a request its times follow from. */
type Asked = Pick<RouteRequest, "promptTokens" | "sequences">;

interface SeenByDecision extends Seen {
  /** A fresh scrape. */
  readonly load: Load | undefined;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** Its numbers are no integers, so that V8 keeps room for others in place. */
function emptySituation(): Writable<Situation> {
  return {
    requests: NaN,
    contextTokens: NaN,
    queuedTokens: NaN,
    sequences: NaN,
    newTokens: NaN,
    attentionPairs: NaN,
    prefillPerMicro: NaN,
    prefillPerStep: NaN,
    turnover: NaN,
    computingMicros: NaN,
    ageMicros: NaN,
    answerTokens: NaN,
  };
}

/**
 * What an endpoint had when a request was sent there.
 * - decision: as the decision saw it, engines' gauges included, which a peer notes where its profile does so as well
 * - requests: the requests that were sent there by this router and its peers, so that routers which get each other's news at
 *   once learn the same
 */
export type SeenBy = "decision" | "requests";

/** What a request's times would be at an endpoint, by models that learn from every request which the router placed. */
export class LatencyForecaster {
  readonly #models: ModelSet;
  readonly #trial = new ForecastTrial();
  readonly #underWay: UnderWay;
  readonly #seenBy: SeenBy;
  readonly #outputTokensGuess: number;
  readonly #answer = new Ewma(OUTPUT_TAU_MICROS);
  readonly #added = new Ewma(OUTPUT_TAU_MICROS);
  readonly #computed = new EndpointWindows(RATE_SECONDS);
  /** As the last input or decision had them. */
  readonly #endpoints = new Map<EndpointId, Endpoint>();
  readonly #loads = new Map<EndpointId, Load>();
  readonly #looked = emptySituation();
  /** By place among the candidates, where each stands decision after decision. */
  readonly #places: (ModelPlace | undefined)[] = [];
  #changes = 0;

  constructor(options: ForecasterOptions, seenBy: SeenBy = "decision") {
    this.#seenBy = seenBy;
    this.#outputTokensGuess = options.outputTokensGuess;
    this.#models = new ModelSet(options);
    this.#underWay = new UnderWay((endpoint) => this.#models.lastOf(endpoint), this.#trial);
  }

  modelOf({ id, endpoint }: Snapshot): LatencyModel {
    if (this.#endpoints.get(id) !== endpoint) {
      this.#endpoints.set(id, endpoint);
      this.#changes++;
    }
    return this.#models.of(endpoint);
  }

  /** What is known of the candidate at a place: each look-up by id takes 100 candidates 2 to 5 us. */
  placeOf(place: number, candidate: Snapshot): ModelPlace {
    const { id, endpoint } = candidate;
    let known = this.#places[place];
    if (known?.endpoint !== endpoint || known.id !== id || known.changes !== this.#changes + this.#models.changes) {
      const model = this.modelOf(candidate);
      const aboard = this.#underWay.lookedAt(id);
      const changes = this.#changes + this.#models.changes;
      known = { id, endpoint, changes, model, aboard, speeds: undefined, computed: undefined };
      this.#places[place] = known;
    }
    known.speeds ??= known.model.speedsOf(id);
    known.computed ??= this.#computed.windowOf(id);
    return known;
  }

  /** Whether its first tokens have been nearer lately than a moving average; undefined before enough of them. */
  get isNearer(): boolean | undefined {
    return this.#trial.isNearer;
  }

  /** Mean length of answers lately. */
  get outputTokens(): number {
    return this.#answer.value ?? this.#outputTokensGuess;
  }

  /** What those need to learn the same who were not there. */
  note({ effectiveLoad, requestsInFlight, prefillTokensQueued, freshness }: NotedLoadSource): Noted | undefined {
    if (this.#seenBy === "requests") return undefined;
    return { load: { effectiveLoad, requestsInFlight, prefillTokensQueued, fresh: freshness === "fresh" } };
  }

  forecast(request: RouteRequest, candidate: Snapshot): Forecast {
    const { promptTokens } = request;
    const situation = this.situation(candidate, request);
    const { id } = candidate;
    const model = this.modelOf(candidate);
    const speeds = model.speedsOf(id);
    return {
      ttftMicros: Math.round(model.ttftMicros(id, situation, speeds)),
      tpotMicros: Math.round(model.tpotMicros(id, situation, promptTokens, speeds)),
    };
  }

  /** Valid until the next call: a decision looks at as many as there are candidates. */
  situation(candidate: Snapshot, request: Asked): Situation {
    const { id, endpoint } = candidate;
    if (this.#endpoints.get(id) !== endpoint) this.#endpoints.set(id, endpoint);
    return this.#situationOf(candidate, request, this.#underWay.at(id), this.#computed.windowOf(id));
  }

  /** The same of one whose place was looked up. */
  situationAt({ aboard, computed }: ModelPlace, candidate: Snapshot, request: Asked): Situation {
    return this.#situationOf(candidate, request, aboard.aboard, computed);
  }

  #situationOf(
    candidate: Snapshot,
    request: Asked,
    aboard: Aboard | undefined,
    computed: WindowSum | undefined,
  ): Situation {
    const load = candidate.freshness === "fresh" ? candidate.load : undefined;
    const added = newTokens(candidate, request.promptTokens);
    const sent = computed === undefined ? 0 : computed.sum(candidate.at);
    return this.#situation(candidate, load, added, request, aboard, sent, this.#looked);
  }

  observe(input: Input, decision: Decision | undefined, request: RouteRequest | undefined): void {
    if (decision?.kind === "routed" && request !== undefined) this.#routed(decision, request);
    this.#underWay.observe(input);
    // A scrape may come in after its endpoint has left.
    if (input.kind === "load-observed" && this.#endpoints.has(input.endpoint)) {
      this.#loads.set(input.endpoint, input.load);
    }
    if (input.kind === "endpoint-joined" || input.kind === "endpoint-changed") {
      this.#changes++;
      this.#endpoints.set(input.endpoint.id, input.endpoint);
      this.#models.of(input.endpoint);
    }
    if (input.kind === "endpoint-left") this.#forget(input.endpoint);
    if (isAnswer(input)) this.#answer.add(input.at, tokensOfEach(input.outputTokens, request?.sequences ?? 1));
  }

  #forget(endpoint: EndpointId): void {
    this.#computed.forget(endpoint);
    this.#trial.forget(endpoint);
    this.#underWay.forget(endpoint);
    this.#models.forget(endpoint);
    this.#endpoints.delete(endpoint);
    this.#loads.delete(endpoint);
  }

  /**
   * Prompts of others are taken to be as long as this one, and everybody to be in the midst of an answer. Of several answers
   * the first one to begin has the first token, and all that there is room for are in the batch together.
   */
  #situation(
    { at, endpoint, effectiveLoad, requestsInFlight, prefillTokensQueued, promptTokensInFlight }: Seen,
    load: Load | undefined,
    added: number,
    { promptTokens, sequences }: Asked,
    aboard: Aboard | undefined,
    sentTokens: number,
    into: Writable<Situation>,
  ): Situation {
    const answerTokens = this.outputTokens;
    const foreign = Math.max(0, effectiveLoad - requestsInFlight);
    const tokens = promptTokensInFlight + foreign * promptTokens + (effectiveLoad * answerTokens) / 2;
    const all = effectiveLoad + 1;
    const room = batchRoom(endpoint, load, (tokens + promptTokens + answerTokens / 2) / all);
    const own = Math.min(sequences, room);
    const requests = Math.min(effectiveLoad, room - own);
    const turnover = Math.max(0, all - room) / room;
    const computedSoon = Math.min(1, room / all);
    const pairs = (aboard?.queuedPairs ?? 0) * computedSoon;
    into.requests = requests;
    into.contextTokens = effectiveLoad === 0 ? 0 : (tokens * requests) / effectiveLoad;
    into.queuedTokens = prefillTokensQueued * computedSoon;
    into.sequences = own;
    into.newTokens = added;
    into.attentionPairs = pairs + attentionPairs(promptTokens, added);
    into.prefillPerMicro = sentTokens / (RATE_SECONDS * MICROS_PER_SECOND);
    into.prefillPerStep = ((this.#added.value ?? added) * requests) / answerTokens;
    into.turnover = turnover;
    into.computingMicros = aboard === undefined ? 0 : aboard.computingMicros(at);
    into.ageMicros = aboard === undefined ? 0 : aboard.ageMicros(at);
    into.answerTokens = answerTokens;
    return into;
  }

  #routed(decision: Routed, request: RouteRequest): void {
    const { at, endpoint: id, hitTokens } = decision;
    // Where two share the work neither takes the time of one.
    if (decision.prefill !== undefined) return;
    const added = Math.max(1, request.promptTokens - Math.floor(hitTokens));
    const seen = this.#seen(decision);
    if (seen === undefined) return;
    const [aboard, sent] = [this.#underWay.at(id), this.#computed.sum(id, at)];
    const situation = this.#situation(seen, seen.load, added, request, aboard, sent, emptySituation());
    this.#computed.add(id, at, added);
    this.#added.add(at, added / request.sequences);
    this.#underWay.began(decision, request, situation, Math.max(0, seen.effectiveLoad - seen.requestsInFlight));
  }

  /** Undefined where the decision has no row of the endpoint. */
  #seen({ at, endpoint: id, sequence, breakdown, noted }: Routed): SeenByDecision | undefined {
    const aboard = this.#underWay.at(id);
    const endpoint = this.#endpoints.get(id);
    const promptTokensInFlight = aboard?.promptTokens ?? 0;
    const isPeers = sequence === PEER_SEQUENCE;
    if (this.#seenBy === "requests" || (isPeers && noted?.load === undefined)) {
      const requests = aboard?.requests ?? 0;
      return {
        at,
        endpoint,
        load: undefined,
        effectiveLoad: requests,
        requestsInFlight: requests,
        prefillTokensQueued: aboard?.queuedTokens ?? 0,
        promptTokensInFlight,
      };
    }
    const load = isPeers ? noted?.load : rowOf(breakdown, id);
    if (load === undefined) return undefined;
    const { effectiveLoad, requestsInFlight, prefillTokensQueued } = load;
    const fresh = "fresh" in load ? load.fresh : load.freshness === "fresh";
    return {
      at,
      endpoint,
      load: fresh ? this.#loads.get(id) : undefined,
      effectiveLoad,
      requestsInFlight,
      prefillTokensQueued,
      promptTokensInFlight,
    };
  }
}

/** Of the columns of this router's own decisions one row is made, not all. */
function rowOf(breakdown: Breakdown, endpoint: EndpointId): CandidateRow | undefined {
  if (!(breakdown instanceof ColumnBreakdown)) return breakdown.candidates.find((one) => one.endpoint === endpoint);
  const index = breakdown.endpoints.indexOf(endpoint);
  return index < 0 ? undefined : breakdown.row(index);
}

type Answered = Extract<Input, { kind: "request-finished" }> & { readonly outputTokens: number };

/** An embedding, a score or a class has no tokens, and is no evidence of how long answers are. */
function isAnswer(input: Input): input is Answered {
  return input.kind === "request-finished" && input.outcome === "ok" && (input.outputTokens ?? 0) > 0;
}

/** Requests followed at once; beyond that the oldest are not learned from. */
const REQUESTS_MAX = 100_000;
/** A pace over fewer tokens is mostly chance. */
const OUTPUT_TOKENS_MIN = 8;

interface Followed extends AboardRequest {
  readonly endpoint: EndpointId;
  /** The endpoint's, which stays while anybody is there. */
  readonly aboard: Aboard;
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
  readonly #aboard = new Map<EndpointId, AboardPlace>();

  constructor(modelOf: (endpoint: EndpointId) => LatencyModel, trial: ForecastTrial) {
    this.#modelOf = modelOf;
    this.#trial = trial;
  }

  /** What of it is there; undefined for nothing. */
  at(endpoint: EndpointId): Aboard | undefined {
    return this.#aboard.get(endpoint)?.aboard;
  }

  /** The same object until the endpoint is forgotten. */
  lookedAt(endpoint: EndpointId): AboardPlace {
    const place = this.#placeOf(endpoint);
    place.isLookedAt = true;
    return place;
  }

  /** Its requests are followed to their end. */
  forget(endpoint: EndpointId): void {
    const place = this.#aboard.get(endpoint);
    if (place === undefined) return;
    place.isLookedAt = false;
    if (place.aboard === undefined) this.#aboard.delete(endpoint);
  }

  #placeOf(endpoint: EndpointId): AboardPlace {
    let place = this.#aboard.get(endpoint);
    if (place === undefined) this.#aboard.set(endpoint, (place = { aboard: undefined, isLookedAt: false }));
    return place;
  }

  /** The request was routed into `situation`, where others than this router have `foreign` requests. */
  began(
    { at, endpoint, requestId }: Routed,
    { promptTokens, sequences }: RouteRequest,
    situation: Situation,
    foreign: number,
  ): void {
    this.#ended(at, requestId);
    const place = this.#placeOf(endpoint);
    const aboard = (place.aboard ??= new Aboard(at));
    const { newTokens } = situation;
    const pairs = attentionPairs(promptTokens, newTokens);
    aboard.sent(at, promptTokens, sequences, pairs);
    aboard.queuedTokens += newTokens;
    this.#followed.set(requestId, {
      endpoint,
      aboard,
      promptTokens,
      sequences,
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
      case "request-arrived":
      case "progress":
      case "load-observed":
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
    const { endpoint, aboard, newTokens, situation, sentAt, forecast, average } = one;
    one.firstTokenAt = at;
    aboard.computed(at, one);
    aboard.queuedTokens -= newTokens;
    one.before = aboard.until(at);
    this.#trial.add(endpoint, at, at - sentAt, forecast, average);
    this.#modelOf(endpoint).learnTtft(endpoint, at, situation, at - sentAt);
  }

  #answered(at: Micros, requestId: string, tokensOfAll: number): void {
    const one = this.#followed.get(requestId);
    if (one?.firstTokenAt === undefined || one.before === undefined) return;
    const { endpoint, before, firstTokenAt, foreign, promptTokens } = one;
    const outputTokens = tokensOfEach(tokensOfAll, one.sequences);
    if (outputTokens < OUTPUT_TOKENS_MIN) return;
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
    aboard.left(at, one);
    if (one.firstTokenAt === undefined) aboard.queuedTokens -= one.newTokens;
    if (aboard.requests > 0) return;
    const place = this.#placeOf(one.endpoint);
    place.aboard = undefined;
    if (!place.isLookedAt) this.#aboard.delete(one.endpoint);
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

/** A request as its endpoint has it. */
interface AboardRequest {
  readonly promptTokens: number;
  readonly sequences: number;
  readonly newTokens: number;
  readonly pairs: number;
  /** Undefined before its answer began. */
  readonly firstTokenAt: Micros | undefined;
}

/** Where an endpoint's requests are found; kept without any for as long as decisions look at it. */
export interface AboardPlace {
  /** Undefined where there are none. */
  aboard: Aboard | undefined;
  isLookedAt: boolean;
}

/** The requests of one endpoint, each answer counted, and those of them that are being made. */
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

  /** Mean time since the answers began that are being made; 0 where none is. */
  ageMicros(at: Micros): Micros {
    return this.#answering === 0 ? 0 : at - this.#bornAt - this.#beganMicros / this.#answering;
  }

  /** For how long the prompts have been computed that are; 0 where there are none. */
  computingMicros(at: Micros): Micros {
    return this.requests === this.#answering ? 0 : Math.max(0, at - this.#computingSince);
  }

  sent(at: Micros, promptTokens: number, sequences: number, pairs: number): void {
    if (this.requests === this.#answering) this.#computingSince = at;
    this.requests += sequences;
    this.queuedPairs += pairs;
    this.promptTokens += promptTokens;
  }

  /** A prompt is computed, its new tokens there and then, and its answers begin. */
  computed(at: Micros, { promptTokens, sequences, newTokens, pairs }: AboardRequest): void {
    this.#until(at);
    this.queuedPairs -= pairs;
    this.#answering += sequences;
    this.#computingSince = at;
    this.#beganMicros += sequences * (at - this.#bornAt);
    this.#answeringPromptTokens += promptTokens;
    this.#computedTokens += newTokens;
  }

  left(at: Micros, { promptTokens, sequences, pairs, firstTokenAt }: AboardRequest): void {
    this.#until(at);
    this.requests -= sequences;
    this.promptTokens -= promptTokens;
    if (firstTokenAt === undefined) {
      this.queuedPairs -= pairs;
      return;
    }
    this.#answering -= sequences;
    this.#beganMicros -= sequences * (firstTokenAt - this.#bornAt);
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
