import type { Decision } from "../decision.ts";
import type { Snapshot } from "../endpoint/snapshot.ts";
import type { Input } from "../input.ts";
import type { RouteRequest } from "../request.ts";
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

/**
 * How long a prompt token and a step of the batch take at each candidate, over the mean of all candidates, as the requests
 * that were placed show it: a board of another kind, or one that is throttled, is known after a few answers. All are 1
 * before the first, or as their step times have it where these are known.
 */
export class EndpointSpeeds {
  readonly #weight: number;
  readonly #forecaster = new LatencyForecaster(PRIORS, "requests");
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
    let [prompts, steps] = [0, 0];
    for (let i = 0; i < candidates.length; i++) {
      const { id } = candidates[i]!;
      const model = this.#forecaster.modelOf(candidates[i]!);
      prompts += this.#prompt[i] = model.tokenMicros * model.ttftSpeed(id);
      steps += this.#step[i] = model.stepMicros(promptTokens) * model.tpotSpeed(id);
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
}
