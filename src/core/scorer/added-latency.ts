import { Ewma } from "../endpoint/ewma.ts";
import { EndpointWindows } from "./window-sum.ts";
import { scorerPlugin } from "./scorer.ts";
import { type ParameterTable, type ParameterValues, resolveParameters } from "../plugin/parameter.ts";
import type { ParameterValue } from "../plugin/spec.ts";
import { newTokens } from "../endpoint/gauge.ts";
import type { Snapshot } from "../endpoint/snapshot.ts";
import type { Decision } from "../input/decision.ts";
import type { Input } from "../input/input.ts";
import { type LatencyModel, tokensOfEach } from "../latency/latency-model.ts";
import type { RouteRequest } from "../request/request.ts";
import { FORECASTER_PARAMETERS, LatencyForecaster } from "./latency-forecaster.ts";

/** Time constant of the mean length of answers. */
const OUTPUT_TAU_MICROS = 300_000_000;

const ADDED_PARAMETERS = {
  queueWeight: {
    type: "number",
    default: 8,
    min: 0,
    meaning: "what a token of the queue costs; above 1 where the first token matters more than the waiting of all",
  },
  cacheWeight: {
    type: "number",
    default: 5,
    min: 0,
    meaning: "what a new token costs beside its time, where demand is as everywhere: blocks displaced, turns to come",
  },
  windowSeconds: {
    type: "number",
    default: 60,
    min: 0.1,
    max: 86_400,
    meaning: "over which demand is taken; some turns of a conversation",
  },
  evidenceTokens: {
    type: "number",
    default: 0,
    min: 0,
    meaning: "prompt tokens per endpoint below which what was sent is little evidence of demand",
  },
  batchWeight: {
    type: "number",
    default: 0.2,
    min: 0,
    meaning: "what longer steps cost against waiting for prompts",
  },
  fullWeight: {
    type: "number",
    default: 10,
    min: 0,
    meaning: "what a token costs that the KV cache has no room for",
  },
  roomShare: {
    type: "number",
    default: 0.9,
    min: 0,
    max: 1,
    meaning: "share of the KV cache that counts as room; answers are longer than the mean, too",
  },
  sequenceTokens: {
    type: "number",
    default: 0.5,
    min: 0,
    meaning: "time that one more sequence adds to a step, in prompt tokens",
  },
  contextShare: {
    type: "number",
    default: 0.002,
    min: 0,
    meaning: "time that one more token of context adds to a step, in prompt tokens",
  },
  speedWeight: {
    type: "number",
    default: 0,
    min: 0,
    max: 1,
    meaning: "how far each endpoint's own speed counts, as it is learned from answers; at 0 all are alike",
  },
  outputTokensGuess: {
    type: "number",
    default: 256,
    min: 1,
    meaning: "length of an answer until the first one was seen",
  },
} as const satisfies ParameterTable;

/**
 * Prefers the endpoint where this request adds the least waiting, its own and that of the requests there, now and later,
 * in units of the time that one prompt token takes to compute.
 *
 *     prefill  = queueWeight * queued prefill tokens + new tokens * (1 + n + cacheWeight * demand)
 *     decode   = output tokens * (2 * n * sequenceTokens + contextShare * (context + n * prompt tokens))
 *     overflow = tokens of context and new ones together beyond roomShare of the KV cache, where its size is known
 *     cost     = promptSpeed * (prefill + fullWeight * overflow) + stepSpeed * batchWeight * decode
 *     score    = (best cost + 1) / (cost + 1)
 *
 * n requests are there, with `context` tokens between them. This request waits for the queued tokens and its own new
 * ones; each of the n waits for the new ones too, whose steps they share. From then on every step takes longer: for this
 * request by the n and their context, for each of the n by this request and its prompt. What does not fit waits until
 * something ends.
 *
 * promptSpeed and stepSpeed are what a prompt token and a step take at this endpoint over the mean of the candidates,
 * as its answers show it (EndpointSpeeds): an idle endpoint on a slower board is not the best one for being idle.
 * speedWeight is how far they count; at 0 all endpoints count as alike.
 *
 * A token computed takes a block of cache from another prompt, and draws the next turns of its conversation to the place.
 * Both cost more where more is asked for:
 *
 *     demand = (sent there + evidenceTokens) / (mean of sent + evidenceTokens)
 *
 * over the prompt tokens sent within windowSeconds. So a new conversation begins where its whole life finds room, and
 * need not move later. evidenceTokens keep a single prompt from counting as demand: without them the only endpoint that
 * ever got one had n times the mean, and a short prompt asked again went away from its own prefix.
 *
 * batchWeight is below 1 since the difference in load that is seen now does not last as long as an answer: those who are
 * there end, and later requests go elsewhere. How long answers are is the moving mean of what was seen. The weights were
 * chosen on halves of workloads and judged on the other halves and on others (bench/profiles.ts).
 */
export const addedLatency = scorerPlugin({
  summary: "waiting that the request would add there, for itself and for the requests it joins",
  reads: ["ledger", "scrape:load", "scrape:kv", "prefix-index", "usage", "observed-latency"],
  source: "gnomon; LMetric's factors, added up as the waiting of each, and Preble's window for what is to come",
  parameters: ADDED_PARAMETERS,
  create(name, parameters) {
    const answer = new Ewma(OUTPUT_TAU_MICROS);
    const sent = new EndpointWindows(parameters.windowSeconds);
    const speeds = parameters.speedWeight > 0 ? new EndpointSpeeds(parameters.speedWeight) : undefined;
    return {
      name,
      score({ promptTokens }, candidates, scores) {
        speeds?.look(candidates, promptTokens);
        const outputTokens = answer.value ?? parameters.outputTokensGuess;
        scoreAdded(parameters, { promptTokens, outputTokens, sent, speeds }, candidates, scores);
      },
      observe(input, decision, request) {
        speeds?.observe(input, decision, request);
        if (decision?.kind === "routed" && request !== undefined) {
          sent.add(decision.endpoint, input.at, request.promptTokens);
        }
        if (input.kind === "endpoint-left") sent.forget(input.endpoint);
        if (input.kind !== "request-finished" || input.outcome !== "ok") return;
        // An embedding, a score or a class has no tokens, and is no evidence of how long answers are.
        if (input.outputTokens === undefined || input.outputTokens === 0) return;
        answer.add(input.at, tokensOfEach(input.outputTokens, request?.sequences ?? 1));
      },
    };
  },
});

/** Added-latency's parameters, with its defaults for those that are not given. */
export function addedWeights(
  given: Readonly<Record<string, ParameterValue>>,
): ParameterValues<typeof ADDED_PARAMETERS> {
  return resolveParameters(ADDED_PARAMETERS, given);
}

/** What added-latency scores by, besides the candidates. */
export interface AddedSituation {
  readonly promptTokens: number;
  /** Mean length of answers. */
  readonly outputTokens: number;
  /** Prompt tokens sent to each endpoint of late. */
  readonly sent: EndpointWindows;
  /** As it was last looked at for these candidates; undefined where all count as alike. */
  readonly speeds?: EndpointSpeeds | undefined;
}

/** Added-latency's scores of the candidates, for who knows the situation himself. */
export function scoreAdded(
  weights: WaitingWeights,
  { promptTokens, outputTokens, sent, speeds }: AddedSituation,
  candidates: readonly Snapshot[],
  scores: Float64Array,
): void {
  const asked = { promptTokens, outputTokens, demand: 1, promptSpeed: 1, stepSpeed: 1 };
  const mean = sent.sums(candidates, scores) / candidates.length + weights.evidenceTokens;
  let best = Infinity;
  for (let i = 0; i < candidates.length; i++) {
    if (mean > 0) asked.demand = (scores[i]! + weights.evidenceTokens) / mean;
    if (speeds !== undefined) {
      asked.promptSpeed = speeds.prompt(i);
      asked.stepSpeed = speeds.step(i);
    }
    const cost = addedWaiting(weights, candidates[i]!, asked);
    scores[i] = cost;
    best = Math.min(best, cost);
  }
  for (let i = 0; i < candidates.length; i++) scores[i] = (best + 1) / (scores[i]! + 1);
}

/** As parameters of added-latency. */
export interface WaitingWeights {
  readonly evidenceTokens: number;
  readonly queueWeight: number;
  readonly cacheWeight: number;
  readonly batchWeight: number;
  readonly fullWeight: number;
  readonly roomShare: number;
  readonly sequenceTokens: number;
  readonly contextShare: number;
}

/**
 * What a request brings, in tokens, `demand`, what was sent to the candidate of late over the mean of all, and what a
 * prompt token and a step take there over the mean of all.
 */
interface Asked {
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly demand: number;
  readonly promptSpeed: number;
  readonly stepSpeed: number;
}

/** Waiting that a request adds at a candidate, in prompt tokens; the formula is added-latency's. */
function addedWaiting(weights: WaitingWeights, candidate: Snapshot, asked: Asked): number {
  const { promptTokens, outputTokens, demand, promptSpeed, stepSpeed } = asked;
  const n = candidate.effectiveLoad;
  const context = contextTokens(candidate, promptTokens, outputTokens);
  const added = newTokens(candidate, promptTokens);
  const prefill = weights.queueWeight * candidate.prefillTokensQueued + added * (1 + n + weights.cacheWeight * demand);
  const decode = outputTokens * (2 * n * weights.sequenceTokens + weights.contextShare * (context + n * promptTokens));
  const { kvCapacityTokens } = candidate.endpoint;
  const room = kvCapacityTokens === undefined ? Infinity : weights.roomShare * kvCapacityTokens;
  const overflow = Math.max(0, context + added - room);
  return (
    promptSpeed * prefill + stepSpeed * (weights.batchWeight * decode) + promptSpeed * (weights.fullWeight * overflow)
  );
}

/** Prompts there, those of others being as long as this one, and half an answer each: they are in the midst of it. */
function contextTokens(candidate: Snapshot, promptTokens: number, outputTokens: number): number {
  const { effectiveLoad, requestsInFlight, promptTokensInFlight } = candidate;
  const foreign = Math.max(0, effectiveLoad - requestsInFlight);
  return promptTokensInFlight + foreign * promptTokens + (effectiveLoad * outputTokens) / 2;
}

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
    // One by one: V8 does not know numbers that are taken from an array for numbers, and boxes each that a loop adds up.
    let prompts = 0;
    let steps = 0;
    let last: LatencyModel | undefined;
    let tokenMicros = 0;
    let stepMicros = 0;
    for (let i = 0; i < candidates.length; i++) {
      const { model, speeds } = this.#forecaster.placeOf(i, candidates[i]!);
      // Most candidates have the same.
      if (model !== last) {
        last = model;
        tokenMicros = model.tokenMicros;
        stepMicros = model.stepMicros(promptTokens);
      }
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
}
