import type { Decision } from "../input/decision.ts";
import type { Endpoint, EndpointId } from "../endpoint/endpoint.ts";
import type { Snapshot } from "../endpoint/snapshot.ts";
import type { Input } from "../input/input.ts";
import type { LatencyModel, Speeds } from "../latency/latency-model.ts";
import type { RouteRequest } from "../request/request.ts";
import { FORECASTER_PARAMETERS, LatencyForecaster } from "./latency-forecaster.ts";

const { outputTokensGuess, ...stepTimes } = FORECASTER_PARAMETERS;
const PRIORS = {
  outputTokensGuess: outputTokensGuess.default,
  stepMicros: stepTimes.stepMicros.default,
  prefillTokenMicros: stepTimes.prefillTokenMicros.default,
  sequenceMicros: stepTimes.sequenceMicros.default,
  contextTokenMicros: stepTimes.contextTokenMicros.default,
  stepTokensMax: stepTimes.stepTokensMax.default,
};
const CANDIDATES = 8;

/** What was found of a candidate, for as long as it is the same and the forecaster has the same `changes`. */
interface Found {
  readonly id: EndpointId;
  readonly endpoint: Endpoint;
  readonly changes: number;
  readonly model: LatencyModel;
  /** Undefined before its first answer. */
  speeds: Speeds | undefined;
}

/**
 * How long a prompt token and a step of the batch take at each candidate, over the mean of all candidates, as the requests
 * that were placed show it: a board of another kind, or one that is throttled, is known after a few answers. All are 1
 * before the first, or as their step times have it where these are known.
 *
 * Candidates stand at the same place decision after decision, so what was found of each is kept by place: looked up by id,
 * five times each, 100 candidates took 5 us more.
 */
export class EndpointSpeeds {
  readonly #weight: number;
  readonly #forecaster = new LatencyForecaster(PRIORS, "requests");
  readonly #found: (Found | undefined)[] = [];
  #prompt: Float64Array = new Float64Array(CANDIDATES);
  #step: Float64Array = new Float64Array(CANDIDATES);
  #promptMean = 1;
  #stepMean = 1;

  /** At 0 all count as alike, at 1 as learned. */
  constructor(weight: number) {
    this.#weight = weight;
  }

  /** For the candidates of one decision; `promptTokens` is its request's. */
  look(candidates: readonly Snapshot[], promptTokens: number): void {
    if (candidates.length > this.#prompt.length) {
      this.#prompt = new Float64Array(2 * candidates.length);
      this.#step = new Float64Array(2 * candidates.length);
    }
    // One by one: V8 does not know numbers that are taken from an array for numbers, and boxes each that a loop adds up.
    let prompts = 0;
    let steps = 0;
    let last: LatencyModel | undefined;
    let tokenMicros = 0;
    let stepMicros = 0;
    for (let i = 0; i < candidates.length; i++) {
      const found = this.#at(i, candidates[i]!);
      const { model } = found;
      // Most candidates have the same.
      if (model !== last) {
        last = model;
        tokenMicros = model.tokenMicros;
        stepMicros = model.stepMicros(promptTokens);
      }
      const speeds = (found.speeds ??= model.speedsOf(found.id));
      prompts += this.#prompt[i] = speeds === undefined ? tokenMicros : tokenMicros * speeds.ttft.value;
      steps += this.#step[i] = speeds === undefined ? stepMicros : stepMicros * speeds.tpot.value;
    }
    this.#promptMean = prompts / candidates.length;
    this.#stepMean = steps / candidates.length;
  }

  /** Of the candidate at this place of the last look: time of a prompt token over the mean. */
  prompt(place: number): number {
    return 1 + this.#weight * (this.#prompt[place]! / this.#promptMean - 1);
  }

  /** The same of a step. */
  step(place: number): number {
    return 1 + this.#weight * (this.#step[place]! / this.#stepMean - 1);
  }

  observe(input: Input, decision: Decision | undefined, request: RouteRequest | undefined): void {
    this.#forecaster.observe(input, decision, request);
  }

  #at(place: number, candidate: Snapshot): Found {
    const { id, endpoint } = candidate;
    const known = this.#found[place];
    const isSame = known?.endpoint === endpoint && known.id === id;
    if (isSame && known.changes === this.#forecaster.changes) return known;
    const model = this.#forecaster.modelOf(candidate);
    const found = { id, endpoint, changes: this.#forecaster.changes, model, speeds: model.speedsOf(id) };
    this.#found[place] = found;
    return found;
  }
}
