import type { Endpoint, EndpointId, Load } from "../endpoint/endpoint.ts";
import { type Micros, MICROS_PER_SECOND } from "../base/units.ts";
import type { StepTimes } from "../endpoint/step-times.ts";

/**
 * Tokens of each of so many answers to one request, which come side by side, where together they have `outputTokens`.
 */
export function tokensOfEach(outputTokens: number, sequences: number): number {
  return Math.ceil(outputTokens / sequences);
}

/**
 * Mean time of a token of one answer after its first, of so many answers that have `outputTokens` together; undefined where
 * there is none, or nobody saw its first one or counted.
 */
export function seenTpotMicros(
  firstTokenAt: Micros | undefined,
  endedAt: Micros,
  outputTokens: number | undefined,
  sequences: number,
): Micros | undefined {
  const tokens = tokensOfEach(outputTokens ?? 0, sequences);
  return firstTokenAt === undefined || tokens < 2 ? undefined : (endedAt - firstTokenAt) / (tokens - 1);
}

/** Where a request would be, or is. All in tokens and requests. */
export interface Situation {
  /** Requests in the batch there beside this one. */
  readonly requests: number;
  /** Tokens of those requests, prompts and what of the answers is there. */
  readonly contextTokens: number;
  /** Prompt tokens that are to be computed right before this request's. */
  readonly queuedTokens: number;
  /** For how long some of these have been computed; 0 without any. */
  readonly computingMicros: Micros;
  /** Answers to this request that are in the batch side by side. */
  readonly sequences: number;
  /** Of this request, not found in the cache. */
  readonly newTokens: number;
  /** Pairs of a token of those and one before it in its own prompt, which attention computes. */
  readonly attentionPairs: number;
  /** Prompt tokens that come there, per microsecond. */
  readonly prefillPerMicro: number;
  /** Prompt tokens that come there with each token of an answer where the batch stays as large as it is. */
  readonly prefillPerStep: number;
  /**
   * Share of the batch that has to end before there is room for this request; 0 where there is room, above 1 where the
   * queue is longer than the batch.
   */
  readonly turnover: number;
  /** Mean time since the answers of the batch began. */
  readonly ageMicros: Micros;
  /** Tokens of a mean answer. */
  readonly answerTokens: number;
}

/** What was there while an answer was made, on average. */
export interface Company {
  /** In the batch, itself included. */
  readonly requests: number;
  readonly contextTokens: number;
  /** Prompt tokens of others that were computed meanwhile, per token of the answer. */
  readonly prefillPerStep: number;
}

/** One endpoint's own. */
export interface Speeds {
  readonly ttft: Speed;
  readonly tpot: Speed;
  readonly wait: Speed;
}

/** A sample counts e-fold less after about so many. */
const KEEP = 0.998;
/** Contexts and prompts are counted in thousands so that all coefficients are of one size. */
const TOKEN_UNIT = 1_000;
const PAIR_UNIT = TOKEN_UNIT * TOKEN_UNIT;
/** A time is never taken for further than this from what was predicted: one stall must not turn the model. */
const SURPRISE_MAX = 8;
/** Share of an endpoint's time that prompts of others take at most, so that a step's time stays finite. */
const PREFILL_SHARE_MAX = 0.8;
/**
 * A sample's error counts as a share of what was predicted above this, so that one long prompt does not outweigh many
 * short ones.
 */
const EVEN_MICROS = 100_000;

/**
 * Predicts the time to first token and per output token at an endpoint, and learns from what they were.
 *
 *     step  = base + perSequence * requests + perContextToken * context
 *     tpot  = speed * min(step / (1 - perToken * prefillPerMicro), step + perToken * min(stepTokensMax, prefillPerStep))
 *     ttft  = speed * (overhead + (steps + 1/2) * step + perToken * (left + new) + perPair * pairs) + wait
 *     steps = ceil((queued + new) / stepTokensMax),  left = queued - min(queued, stepTokensMax, computing / perToken)
 *     wait  = waitSpeed * (turnover * answer * tpot + max(0, answer * tpot / 2 - age))
 *
 * The half step is what a request waits for the one under way, which has been computing prompts for a while; `overhead`
 * is what is the same for every request, on the way there and back. Where the batch or the cache is full, requests wait
 * until others end: a batch's worth of them ends within the time of a mean answer, and the first of them later where
 * they all began of late. The coefficients are one set for all endpoints of the model, by recursive least squares;
 * speeds are an endpoint's own: the moving mean of measured over predicted there, so that a slower board, or one that
 * is throttled, is known after a few answers.
 */
export class LatencyModel {
  readonly #priors: StepTimes;
  readonly #step: LeastSquares;
  readonly #token: LeastSquares;
  #ttftSamples = 0;
  #tpotSamples = 0;
  readonly #speeds = new Map<EndpointId, Speeds>();
  /** The same in the order in which they began. */
  #all: readonly Speeds[] = [];
  readonly #features = [1, 0, 0];
  readonly #tokenFeatures = [1, 0, 0];

  /** `priors` are what it begins with, until answers have shown others. */
  constructor(priors: StepTimes) {
    this.#priors = priors;
    const { stepMicros, sequenceMicros, contextTokenMicros, prefillTokenMicros } = priors;
    this.#step = new LeastSquares(
      [
        { value: stepMicros, weight: 0.5 },
        { value: sequenceMicros, weight: 50 },
        { value: contextTokenMicros * TOKEN_UNIT, weight: 500 },
      ],
      KEEP,
    );
    this.#token = new LeastSquares(
      [
        { value: 0, weight: 2 },
        { value: prefillTokenMicros * TOKEN_UNIT, weight: 1 },
        { value: 0, weight: 100_000 },
      ],
      KEEP,
    );
  }

  /** Of one prompt token at a mean endpoint, in microseconds. */
  get tokenMicros(): number {
    return Math.max(this.#priors.prefillTokenMicros / 100, this.#token.coefficients[1]! / TOKEN_UNIT);
  }

  /** Of a step with one request of so many tokens at a mean endpoint, in microseconds. */
  stepMicros(tokens: number): number {
    return this.#stepOf(1, tokens);
  }

  /** What one more request with so many tokens and answers adds to a step at a mean endpoint, in microseconds. */
  addedMicros(tokens: number, sequences: number): number {
    const [, sequence, context] = this.#step.coefficients;
    return sequences * Math.max(0, sequence!) + (Math.max(0, context!) * tokens) / TOKEN_UNIT;
  }

  /** `speeds` are the endpoint's, by who has looked them up. */
  ttftMicros(endpoint: EndpointId, situation: Situation, speeds = this.#speeds.get(endpoint)): number {
    return this.ttftBehind(situation, speeds, this.turnMicros(endpoint, situation, speeds));
  }

  /** The same where it is known how long it is until there is room. */
  ttftBehind(situation: Situation, speeds: Speeds | undefined, turnMicros: number): number {
    return (speeds?.ttft.value ?? 1) * this.#ttft(situation) + turnMicros;
  }

  /** Of that, until others have ended and there is room. */
  turnMicros(endpoint: EndpointId, situation: Situation, speeds = this.#speeds.get(endpoint)): number {
    return situation.turnover === 0 ? 0 : (speeds?.wait.value ?? 1) * this.#wait(endpoint, situation);
  }

  /** `promptTokens` of the request itself. */
  tpotMicros(
    endpoint: EndpointId,
    situation: Situation,
    promptTokens: number,
    speeds = this.#speeds.get(endpoint),
  ): number {
    const { requests, contextTokens, sequences, prefillPerMicro, prefillPerStep } = situation;
    const perToken = this.tokenMicros * (speeds?.ttft.value ?? 1);
    const step = (speeds?.tpot.value ?? 1) * this.#stepOf(requests + sequences, contextTokens + promptTokens);
    const busy = Math.min(PREFILL_SHARE_MAX, perToken * prefillPerMicro);
    const most = perToken * Math.min(this.#priors.stepTokensMax, prefillPerStep);
    return Math.min(step / (1 - busy), step + most);
  }

  /** The same object until the endpoint is forgotten; undefined before the first answer, where all count as 1. */
  speedsOf(endpoint: EndpointId): Speeds | undefined {
    return this.#speeds.get(endpoint);
  }

  ttftSpeed(endpoint: EndpointId): number {
    return this.#speeds.get(endpoint)?.ttft.value ?? 1;
  }

  tpotSpeed(endpoint: EndpointId): number {
    return this.#speeds.get(endpoint)?.tpot.value ?? 1;
  }

  /** A request's first token came so long after it was sent into `situation`. */
  learnTtft(endpoint: EndpointId, at: Micros, situation: Situation, micros: number): void {
    const speeds = this.#begunSpeedsOf(endpoint);
    const predicted = this.#ttft(situation);
    if (situation.turnover > 0) {
      const wait = this.#wait(endpoint, situation);
      speeds.wait.add(at, bounded(micros - speeds.ttft.value * predicted, wait), wait);
      return;
    }
    const measured = bounded(micros, predicted);
    const weight = Math.min(1, EVEN_MICROS / predicted);
    this.#tokenFeatures[0] = weight;
    this.#tokenFeatures[1] = (weight * this.#tokens(situation)) / TOKEN_UNIT;
    this.#tokenFeatures[2] = (weight * situation.attentionPairs) / PAIR_UNIT;
    this.#token.add(this.#tokenFeatures, weight * (measured / this.#share(speeds, "ttft") - this.#steps(situation)));
    speeds.ttft.add(at, measured, this.#ttftSamples++ < YOUNG_SAMPLES ? this.#ttft(situation) : predicted);
  }

  /** A request's output tokens came at this pace. */
  learnTpot(
    endpoint: EndpointId,
    at: Micros,
    { requests, contextTokens, prefillPerStep }: Company,
    micros: number,
  ): void {
    const known = this.#speeds.get(endpoint);
    const prompts = this.tokenMicros * (known?.ttft.value ?? 1) * prefillPerStep;
    const step = Math.max(micros * (1 - PREFILL_SHARE_MAX), micros - prompts);
    const predicted = this.#stepOf(requests, contextTokens);
    const measured = bounded(step, predicted);
    this.#features[1] = requests;
    this.#features[2] = contextTokens / TOKEN_UNIT;
    this.#step.add(this.#features, measured / this.#share(known, "tpot"));
    const expected = this.#tpotSamples++ < YOUNG_SAMPLES ? this.#stepOf(requests, contextTokens) : predicted;
    (known ?? this.#begunSpeedsOf(endpoint)).tpot.add(at, measured, expected);
  }

  forget(endpoint: EndpointId): void {
    this.#speeds.delete(endpoint);
    this.#all = [...this.#speeds.values()];
  }

  /** Where there is room. */
  #ttft(situation: Situation): number {
    const overhead = Math.max(0, this.#token.coefficients[0]!);
    const pairs = (Math.max(0, this.#token.coefficients[2]!) * situation.attentionPairs) / PAIR_UNIT;
    const tokens = this.tokenMicros * this.#tokens(situation);
    return overhead + this.#steps(situation) + tokens + pairs;
  }

  /** Prompt tokens to be computed first, and its own, less what the step under way has computed already. */
  #tokens({ queuedTokens, computingMicros, newTokens }: Situation): number {
    const done = Math.min(queuedTokens, this.#priors.stepTokensMax, computingMicros / this.tokenMicros);
    return queuedTokens - done + newTokens;
  }

  /** Until there is room. */
  #wait(endpoint: EndpointId, situation: Situation): number {
    const answer = situation.answerTokens * this.tpotMicros(endpoint, situation, 0);
    return situation.turnover * answer + Math.max(0, answer / 2 - situation.ageMicros);
  }

  /** Steps that it takes beside the prompts themselves. */
  #steps({ requests, contextTokens, queuedTokens, newTokens }: Situation): number {
    const steps = Math.ceil((queuedTokens + newTokens) / this.#priors.stepTokensMax);
    return (steps + (requests > 0 ? 0.5 : 0)) * this.#stepOf(requests, contextTokens);
  }

  #stepOf(requests: number, contextTokens: number): number {
    this.#features[1] = requests;
    this.#features[2] = contextTokens / TOKEN_UNIT;
    return Math.max(this.#priors.stepMicros / 100, this.#step.at(this.#features));
  }

  #begunSpeedsOf(endpoint: EndpointId): Speeds {
    let speeds = this.#speeds.get(endpoint);
    if (speeds === undefined) {
      const { stepMicros } = this.#priors;
      const [ttft, tpot] = [new Speed(PRIOR_STEPS * stepMicros), new Speed(PRIOR_STEPS * stepMicros)];
      this.#speeds.set(endpoint, (speeds = { ttft, tpot, wait: new Speed(PRIOR_WAIT_STEPS * stepMicros) }));
      this.#all = [...this.#speeds.values()];
    }
    return speeds;
  }

  /** A speed over the mean of all: what is common to all is the coefficients'. */
  #share(own: Speeds | undefined, kind: keyof Speeds): number {
    if (own === undefined) return 1;
    const all = this.#all;
    let sum = 0;
    for (let i = 0; i < all.length; i++) sum += all[i]![kind].value;
    return (own[kind].value * all.length) / sum;
  }
}

/** The first samples teach the coefficients alone, so that what both learn of them does not count twice. */
const YOUNG_SAMPLES = 8;
/** What a speed of 1 is taken for before the first sample, in steps. */
const PRIOR_STEPS = 5;
const PRIOR_WAIT_STEPS = 500;

function bounded(micros: number, predicted: number): number {
  return Math.min(SURPRISE_MAX * predicted, Math.max(predicted / SURPRISE_MAX, micros));
}

/** A prior guess of one coefficient, as strong as `weight` samples whose feature is 1. */
interface Prior {
  readonly value: number;
  readonly weight: number;
}

/**
 * Coefficients of a linear model, after each sample, by recursive least squares with exponential forgetting:
 *
 *     gain = P x / (keep + x' P x),  b += gain * (y - x' b),  P = (P - gain x' P) / keep
 *
 * P begins as the diagonal of 1 / prior weight. What forgetting takes of the evidence for a feature that does not vary
 * would grow without end, so P is scaled back to where it began once its largest diagonal is above that.
 */
export class LeastSquares {
  readonly coefficients: number[];
  readonly #keep: number;
  readonly #p: number[][];
  readonly #spreadMax: readonly number[];
  readonly #px: number[];

  /** `keep` in (0, 1]: weight of a sample against the one after it. */
  constructor(priors: readonly Prior[], keep: number) {
    this.coefficients = priors.map(({ value }) => value);
    this.#keep = keep;
    this.#spreadMax = priors.map(({ weight }) => 1 / weight);
    this.#p = priors.map((_, i) => priors.map((__, j) => (i === j ? this.#spreadMax[i]! : 0)));
    this.#px = priors.map(() => 0);
  }

  at(features: readonly number[]): number {
    let sum = 0;
    for (let i = 0; i < features.length; i++) sum += features[i]! * this.coefficients[i]!;
    return sum;
  }

  add(features: readonly number[], y: number): void {
    const p = this.#p;
    const px = this.#px;
    let spread = this.#keep;
    for (let i = 0; i < px.length; i++) {
      px[i] = 0;
      for (let j = 0; j < px.length; j++) px[i]! += p[i]![j]! * features[j]!;
      spread += px[i]! * features[i]!;
    }
    const error = y - this.at(features);
    for (let i = 0; i < px.length; i++) {
      this.coefficients[i]! += (px[i]! / spread) * error;
      for (let j = 0; j <= i; j++) {
        const value = (p[i]![j]! - (px[i]! * px[j]!) / spread) / this.#keep;
        p[i]![j] = value;
        p[j]![i] = value;
      }
    }
    this.#bound();
  }

  #bound(): void {
    let scale = 1;
    for (let i = 0; i < this.#px.length; i++) scale = Math.min(scale, this.#spreadMax[i]! / this.#p[i]![i]!);
    if (scale >= 1) return;
    for (const row of this.#p) for (let j = 0; j < row.length; j++) row[j]! *= scale;
  }
}

/** Share that is left of what was known before a sample: about so many of the latest count. */
const SPEED_KEEP = 0.95;
const TAU_MICROS = 30 * MICROS_PER_SECOND;

/**
 * How much longer something takes than predicted: the sum of what was measured over the sum of what was predicted, the
 * latest counting most, so that a short time that was disturbed weighs no more than it took. It begins at 1, as if
 * `priorMicros` had been predicted and measured.
 *
 *     keep = min(0.95, tau / (tau + time since the last sample))
 */
export class Speed {
  /** Read for each endpoint in every decision, and written once an answer. */
  value = 1;
  #measuredMicros: number;
  #predictedMicros: number;
  #at: Micros | undefined;

  constructor(priorMicros: number) {
    this.#measuredMicros = priorMicros;
    this.#predictedMicros = priorMicros;
  }

  add(at: Micros, measuredMicros: number, predictedMicros: number): void {
    const elapsed = Math.max(0, at - (this.#at ?? at));
    const keep = Math.min(SPEED_KEEP, TAU_MICROS / (TAU_MICROS + elapsed));
    this.#measuredMicros = keep * this.#measuredMicros + measuredMicros;
    this.#predictedMicros = keep * this.#predictedMicros + predictedMicros;
    this.value = this.#measuredMicros / this.#predictedMicros;
    this.#at = at;
  }
}

/** An endpoint's, by what was last known of it. */
interface Member {
  readonly stepTimes: StepTimes;
  readonly key: string;
}

interface Group {
  readonly model: LatencyModel;
  members: number;
}

/**
 * One LatencyModel for the endpoints that begin with the same step times, so that they learn from each other and a board
 * of another kind does not; one more, with the defaults, for those whose step times nobody knows.
 */
export class ModelSet {
  readonly #unknown: LatencyModel;
  readonly #groups = new Map<string, Group>();
  readonly #members = new Map<EndpointId, Member>();
  /** Grows as soon as an endpoint may have another model, or other speeds, than before. */
  changes = 0;

  constructor(defaults: StepTimes) {
    this.#unknown = new LatencyModel(defaults);
  }

  /** By what is known of the endpoint now, so that it is right for one that was here before its profile was. */
  of({ id, stepTimes }: Pick<Endpoint, "id" | "stepTimes">): LatencyModel {
    if (stepTimes !== this.#members.get(id)?.stepTimes) this.#describe(id, stepTimes);
    return this.lastOf(id);
  }

  /** The same for one that a decision has looked at. */
  lastOf(id: EndpointId): LatencyModel {
    const member = this.#members.get(id);
    return member === undefined ? this.#unknown : this.#groups.get(member.key)!.model;
  }

  #describe(id: EndpointId, stepTimes: StepTimes | undefined): void {
    this.changes++;
    const known = this.#members.get(id);
    const key = stepTimes && keyOf(stepTimes);
    if (key !== known?.key) this.forget(id);
    if (stepTimes === undefined || key === undefined) return;
    this.#members.set(id, { stepTimes, key });
    if (key === known?.key) return;
    let group = this.#groups.get(key);
    if (group === undefined) this.#groups.set(key, (group = { model: new LatencyModel(stepTimes), members: 0 }));
    group.members++;
  }

  /** A group without members is forgotten, so that there are never more of them than endpoints. */
  forget(id: EndpointId): void {
    this.changes++;
    this.lastOf(id).forget(id);
    const member = this.#members.get(id);
    if (member === undefined) return;
    this.#members.delete(id);
    const group = this.#groups.get(member.key)!;
    group.members--;
    if (group.members === 0) this.#groups.delete(member.key);
  }
}

function keyOf(times: StepTimes): string {
  const { stepMicros, prefillTokenMicros, sequenceMicros, contextTokenMicros, stepTokensMax } = times;
  return [stepMicros, prefillTokenMicros, sequenceMicros, contextTokenMicros, stepTokensMax].join(" ");
}

/** Share of the cache above which prompts that wait there wait for room in it. */
const FULL_SHARE = 0.85;
/**
 * Below it, gauges show that there is room, whatever contexts that were added up say: what prompts have in common lies
 * there once.
 */
const ROOMY_SHARE = 0.5;

/**
 * Requests that an endpoint runs at once, at least 1: as many as it was seen to run while others waited for a place or for
 * room in its cache, else as many as it may (max_num_seqs) or its cache has room for at `tokensEach`; Infinity where
 * nobody knows. `load` is a fresh scrape, if there is one.
 */
export function batchRoom(
  endpoint: Pick<Endpoint, "concurrencyMax" | "kvCapacityTokens"> | undefined,
  load: Load | undefined,
  tokensEach: number,
): number {
  const { concurrencyMax = Infinity, kvCapacityTokens = Infinity } = endpoint ?? {};
  const { running = 0, waiting = 0, kvUtilization } = load ?? {};
  if (running > 0 && waiting > 0 && (running >= concurrencyMax || (kvUtilization ?? 0) >= FULL_SHARE)) return running;
  const roomy = kvUtilization !== undefined && kvUtilization < ROOMY_SHARE;
  return Math.max(1, Math.min(concurrencyMax, roomy ? Infinity : kvCapacityTokens / tokensEach));
}

/**
 * Pairs of a new token of a prompt and one before it, which attention computes: newTokens * (promptTokens - newTokens /
 * 2).
 */
export function attentionPairs(promptTokens: number, newTokens: number): number {
  return newTokens * (promptTokens - newTokens / 2);
}
