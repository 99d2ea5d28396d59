import type { EndpointId } from "../endpoint/endpoint.ts";
import { Ewma } from "../endpoint/ewma.ts";
import { MICROS_PER_SECOND, type Micros } from "../units.ts";
import type { StepTimes } from "../endpoint/step-times.ts";
import { LeastSquares } from "./least-squares.ts";

/** Where a request would be, or is. All in tokens and requests. */
export interface Situation {
  /** Requests there beside this one. */
  readonly requests: number;
  /** Tokens of those requests, prompts and what of the answers is there. */
  readonly contextTokens: number;
  /** Prompt tokens that are to be computed before this request's. */
  readonly queuedTokens: number;
  /** Of this request, not found in the cache. */
  readonly newTokens: number;
  /** Prompt tokens that come there, per microsecond. */
  readonly prefillPerMicro: number;
}

interface Speed {
  readonly ttft: Ewma;
  readonly tpot: Ewma;
}

/** A sample counts e-fold less after about so many. */
const KEEP = 0.998;
const SPEED_TAU_MICROS = 30 * MICROS_PER_SECOND;
/** Contexts are counted in thousands so that all coefficients are of one size. */
const CONTEXT_UNIT = 1_000;
/** A time is never taken for further than this from what was predicted: one stall must not turn the model. */
const SURPRISE_MAX = 8;
/** Share of an endpoint's time that prompts of others take at most, so that a step's time stays finite. */
const PREFILL_SHARE_MAX = 0.8;

/**
 * Predicts the time to first token and per output token at an endpoint, and learns from what they were.
 *
 *     step  = base + perSequence * requests + perContextToken * context
 *     ttft  = speed * ((steps + 1/2) * step + perToken * (queued + new)),  steps = ceil((queued + new) / stepTokensMax)
 *     tpot  = speed * step(with this request) / (1 - perToken * prefillPerMicro)
 *
 * The half step is what a request waits for the one under way. The coefficients are one set for all endpoints of the
 * model, by recursive least squares; `speed` is an endpoint's own, one for each of the two times: the moving mean of measured over
 * predicted there, so that a slower board, or one that is throttled, is known after a few answers.
 */
export class LatencyModel {
  readonly #priors: StepTimes;
  readonly #step: LeastSquares;
  readonly #token: LeastSquares;
  readonly #speeds = new Map<EndpointId, Speed>();
  readonly #features = [1, 0, 0];

  /** `priors` are what it begins with, until answers have shown others. */
  constructor(priors: StepTimes) {
    this.#priors = priors;
    const { stepMicros, sequenceMicros, contextTokenMicros, prefillTokenMicros } = priors;
    this.#step = new LeastSquares(
      [
        { value: stepMicros, weight: 0.5 },
        { value: sequenceMicros, weight: 50 },
        { value: contextTokenMicros * CONTEXT_UNIT, weight: 500 },
      ],
      KEEP,
    );
    this.#token = new LeastSquares([{ value: prefillTokenMicros, weight: 1_000_000 }], KEEP);
  }

  /** Of one prompt token at a mean endpoint, in microseconds. */
  get tokenMicros(): number {
    return Math.max(this.#priors.prefillTokenMicros / 100, this.#token.coefficients[0]!);
  }

  /** What one more request with so many tokens adds to a step at a mean endpoint, in microseconds. */
  addedMicros(tokens: number): number {
    const [, sequence, context] = this.#step.coefficients;
    return Math.max(0, sequence!) + (Math.max(0, context!) * tokens) / CONTEXT_UNIT;
  }

  ttftMicros(endpoint: EndpointId, situation: Situation): number {
    return this.ttftSpeed(endpoint) * this.#ttft(situation);
  }

  /** `promptTokens` of the request itself. */
  tpotMicros(endpoint: EndpointId, situation: Situation, promptTokens: number): number {
    const { requests, contextTokens, prefillPerMicro } = situation;
    const speed = this.tpotSpeed(endpoint);
    const busy = Math.min(PREFILL_SHARE_MAX, this.tokenMicros * this.ttftSpeed(endpoint) * prefillPerMicro);
    return (speed * this.#stepOf(requests + 1, contextTokens + promptTokens)) / (1 - busy);
  }

  ttftSpeed(endpoint: EndpointId): number {
    return this.#speeds.get(endpoint)?.ttft.value ?? 1;
  }

  tpotSpeed(endpoint: EndpointId): number {
    return this.#speeds.get(endpoint)?.tpot.value ?? 1;
  }

  /** A request's first token came so long after it was sent into `situation`. */
  learnTtft(endpoint: EndpointId, at: Micros, situation: Situation, micros: number): void {
    const predicted = this.#ttft(situation);
    const ratio = bounded(micros / predicted);
    const share = this.#share(endpoint, "ttft");
    const tokens = situation.queuedTokens + situation.newTokens;
    this.#token.add([tokens], Math.max(0, (ratio * predicted) / share - this.#waiting(situation)));
    this.#speed(endpoint).ttft.add(at, ratio);
  }

  /** A request's output tokens came at this pace, `requests` and `contextTokens` being means over that time, itself included. */
  learnTpot(
    endpoint: EndpointId,
    at: Micros,
    mean: Pick<Situation, "requests" | "contextTokens" | "prefillPerMicro">,
    micros: number,
  ): void {
    const busy = Math.min(PREFILL_SHARE_MAX, this.tokenMicros * this.ttftSpeed(endpoint) * mean.prefillPerMicro);
    const predicted = this.#stepOf(mean.requests, mean.contextTokens);
    const ratio = bounded((micros * (1 - busy)) / predicted);
    const share = this.#share(endpoint, "tpot");
    this.#step.add([1, mean.requests, mean.contextTokens / CONTEXT_UNIT], (ratio * predicted) / share);
    this.#speed(endpoint).tpot.add(at, ratio);
  }

  forget(endpoint: EndpointId): void {
    this.#speeds.delete(endpoint);
  }

  #ttft(situation: Situation): number {
    return this.#waiting(situation) + this.tokenMicros * (situation.queuedTokens + situation.newTokens);
  }

  /** Steps that it takes beside the prompts themselves. */
  #waiting({ requests, contextTokens, queuedTokens, newTokens }: Situation): number {
    const steps = Math.ceil((queuedTokens + newTokens) / this.#priors.stepTokensMax);
    return (steps + (requests > 0 ? 0.5 : 0)) * this.#stepOf(requests, contextTokens);
  }

  #stepOf(requests: number, contextTokens: number): number {
    this.#features[1] = requests;
    this.#features[2] = contextTokens / CONTEXT_UNIT;
    return Math.max(this.#priors.stepMicros / 100, this.#step.at(this.#features));
  }

  #speed(endpoint: EndpointId): Speed {
    let speed = this.#speeds.get(endpoint);
    if (speed === undefined) {
      speed = { ttft: new Ewma(SPEED_TAU_MICROS), tpot: new Ewma(SPEED_TAU_MICROS) };
      this.#speeds.set(endpoint, speed);
    }
    return speed;
  }

  /** Its speed over the mean of all: what is common to all is the coefficients'. */
  #share(endpoint: EndpointId, kind: keyof Speed): number {
    let [sum, count] = [0, 0];
    for (const speed of this.#speeds.values()) {
      const { value } = speed[kind];
      if (value === undefined) continue;
      sum += value;
      count++;
    }
    const own = this.#speeds.get(endpoint)?.[kind].value;
    return own === undefined ? 1 : (own * count) / sum;
  }
}

function bounded(ratio: number): number {
  return Math.min(SURPRISE_MAX, Math.max(1 / SURPRISE_MAX, ratio));
}
