import type { Decision, Routed } from "../decision.ts";
import type { EndpointId } from "../endpoint/endpoint.ts";
import { Ewma } from "../endpoint/ewma.ts";
import { newTokens } from "../endpoint/gauge.ts";
import type { Snapshot } from "../endpoint/snapshot.ts";
import type { StepTimes } from "../endpoint/step-times.ts";
import type { Input } from "../input.ts";
import type { Forecast } from "../latency/forecast.ts";
import type { Situation } from "../latency/latency-model.ts";
import { ModelSet } from "../latency/model-set.ts";
import type { RouteRequest } from "../request.ts";
import { MICROS_PER_SECOND, type Micros } from "../units.ts";
import { EndpointWindows } from "./endpoint-windows.ts";
import { type Scorer, scorerPlugin } from "./scorer.ts";
import { UnderWay } from "./under-way.ts";

/** Time constant of the mean length of answers. */
const OUTPUT_TAU_MICROS = 300 * MICROS_PER_SECOND;
/** Over which the rate of prompts at an endpoint is taken. */
const RATE_SECONDS = 10;

/**
 * Prefers the endpoint where this request adds the least time, its own and that of the requests there, now and later, in
 * microseconds as predicted from what engines were seen to take (LatencyModel).
 *
 *     wait     = predicted TTFT - own prefill,  own prefill = time of the new tokens
 *     prefill  = own prefill * (1 + n + cacheWeight * demand)
 *     decode   = output tokens * (predicted TPOT + n * what one more sequence with this prompt adds to a step)
 *     overflow = time of the tokens of context and new ones together beyond roomShare of the KV cache, where it is known
 *     cost     = waitWeight * wait + prefill + batchWeight * decode + fullWeight * overflow
 *     score    = best cost / cost
 *
 * Endpoints whose step times are known, by their engine file or a fit, begin with those and are learned on from together;
 * all others begin with the parameters. n requests are there. `demand` and the reasons for the weights are added-latency's, whose cost is counted in tokens and
 * holds for one kind of engine; here what a token, a sequence and a step take is learned, and each endpoint's own speed.
 */
export const predictedLatency = scorerPlugin({
  summary: "time that the request would add there, for itself and for the requests it joins, as predicted",
  reads: ["ledger", "scrape:load", "prefix-index", "usage", "observed-latency"],
  source: "gnomon; added-latency in the time of a model of vLLM's steps, learned while it routes",
  parameters: {
    waitWeight: { type: "number", default: 4, min: 0, meaning: "what waiting for the own prompt's turn costs" },
    cacheWeight: {
      type: "number",
      default: 5,
      min: 0,
      meaning: "what a new token costs beside its time, at mean demand",
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
    roomShare: { type: "number", default: 0.9, min: 0, max: 1, meaning: "share of the KV cache that counts as room" },
    windowSeconds: { type: "number", default: 60, min: 0.1, max: 86_400, meaning: "over which demand is taken" },
    evidenceTokens: {
      type: "number",
      default: 1_000,
      min: 0,
      meaning: "prompt tokens per endpoint below which what was sent is little evidence of demand",
    },
    outputTokensGuess: {
      type: "number",
      default: 256,
      min: 1,
      meaning: "length of an answer until the first was seen",
    },
    stepMicros: { type: "number", default: 8_000, min: 1, meaning: "time of a step, until it is learned" },
    prefillTokenMicros: { type: "number", default: 40, min: 0.001, meaning: "time of a prompt token, until learned" },
    sequenceMicros: { type: "number", default: 20, min: 0, meaning: "time of a sequence in a step, until learned" },
    contextTokenMicros: { type: "number", default: 0.08, min: 0, meaning: "time of a token of context, until learned" },
    stepTokensMax: { type: "integer", default: 8_192, min: 1, meaning: "tokens of a step (max_num_batched_tokens)" },
  },
  create: (name, parameters) => new LatencyScorer(name, parameters),
});

interface Weights extends StepTimes {
  readonly waitWeight: number;
  readonly cacheWeight: number;
  readonly batchWeight: number;
  readonly fullWeight: number;
  readonly roomShare: number;
  readonly windowSeconds: number;
  readonly evidenceTokens: number;
  readonly outputTokensGuess: number;
}

class LatencyScorer implements Scorer {
  readonly name: string;
  readonly #weights: Weights;
  readonly #models: ModelSet;
  readonly #underWay: UnderWay;
  readonly #answer = new Ewma(OUTPUT_TAU_MICROS);
  readonly #sent: EndpointWindows;
  readonly #computed = new EndpointWindows(RATE_SECONDS);

  constructor(name: string, weights: Weights) {
    this.name = name;
    this.#weights = weights;
    this.#models = new ModelSet(weights);
    this.#underWay = new UnderWay((endpoint) => this.#models.lastOf(endpoint));
    this.#sent = new EndpointWindows(weights.windowSeconds);
  }

  score({ promptTokens }: RouteRequest, candidates: readonly Snapshot[], scores: Float64Array): void {
    const { evidenceTokens } = this.#weights;
    let sum = 0;
    for (let i = 0; i < candidates.length; i++) {
      sum += scores[i] = this.#sent.sum(candidates[i]!.id, candidates[i]!.at);
    }
    const mean = sum / candidates.length + evidenceTokens;
    let best = Infinity;
    for (let i = 0; i < candidates.length; i++) {
      const demand = mean > 0 ? (scores[i]! + evidenceTokens) / mean : 1;
      scores[i] = this.#cost(candidates[i]!, promptTokens, demand);
      best = Math.min(best, scores[i]!);
    }
    for (let i = 0; i < candidates.length; i++) scores[i] = best / scores[i]!;
  }

  forecast({ promptTokens }: RouteRequest, candidate: Snapshot): Forecast {
    const situation = this.#situation(candidate, promptTokens);
    const model = this.#models.of(candidate.endpoint);
    return {
      ttftMicros: Math.round(model.ttftMicros(candidate.id, situation)),
      tpotMicros: Math.round(model.tpotMicros(candidate.id, situation, promptTokens)),
    };
  }

  observe(input: Input, decision: Decision | undefined, request: RouteRequest | undefined): void {
    if (decision?.kind === "routed" && request !== undefined) this.#routed(input.at, decision, request);
    this.#underWay.observe(input);
    if (input.kind === "endpoint-left") {
      for (const known of [this.#sent, this.#computed, this.#models]) known.forget(input.endpoint);
    }
    if (isAnswer(input)) this.#answer.add(input.at, input.outputTokens);
  }

  #cost(candidate: Snapshot, promptTokens: number, demand: number): number {
    const weights = this.#weights;
    const { id, endpoint } = candidate;
    const model = this.#models.of(endpoint);
    const situation = this.#situation(candidate, promptTokens);
    const own = situation.newTokens * model.tokenMicros * model.ttftSpeed(id);
    const wait = model.ttftMicros(id, situation) - own;
    const prefill = own * (1 + situation.requests + weights.cacheWeight * demand);
    const added = situation.requests * model.tpotSpeed(id) * model.addedMicros(promptTokens);
    const decode = this.#outputTokens * (model.tpotMicros(id, situation, promptTokens) + added);
    const { kvCapacityTokens } = endpoint;
    const room = kvCapacityTokens === undefined ? Infinity : kvCapacityTokens * weights.roomShare;
    const overflow = Math.max(0, situation.contextTokens + situation.newTokens - room) * model.tokenMicros;
    return weights.waitWeight * wait + prefill + weights.batchWeight * decode + weights.fullWeight * overflow;
  }

  get #outputTokens(): number {
    return this.#answer.value ?? this.#weights.outputTokensGuess;
  }

  /** Prompts of others are taken to be as long as this one, and everybody to be in the midst of an answer. */
  #situation(candidate: Snapshot, promptTokens: number): Situation {
    const { id, at, effectiveLoad, requestsInFlight, prefillTokensQueued, promptTokensInFlight } = candidate;
    const foreign = Math.max(0, effectiveLoad - requestsInFlight);
    return {
      requests: effectiveLoad,
      contextTokens: promptTokensInFlight + foreign * promptTokens + (effectiveLoad * this.#outputTokens) / 2,
      queuedTokens: prefillTokensQueued,
      newTokens: newTokens(candidate, promptTokens),
      prefillPerMicro: this.#prefillPerMicro(id, at),
    };
  }

  #prefillPerMicro(endpoint: EndpointId, at: Micros): number {
    return this.#computed.sum(endpoint, at) / (RATE_SECONDS * MICROS_PER_SECOND);
  }

  #routed(at: Micros, decision: Routed, request: RouteRequest): void {
    const { endpoint, breakdown, hitTokens } = decision;
    this.#sent.add(endpoint, at, request.promptTokens);
    // A peer's decision has no rows, and where two share the work neither takes the time of one.
    const row = breakdown.candidates.find((one) => one.endpoint === endpoint);
    if (row === undefined || decision.prefill !== undefined) return;
    const added = Math.max(1, request.promptTokens - Math.floor(hitTokens));
    this.#computed.add(endpoint, at, added);
    this.#underWay.began(decision, request, row, added, this.#prefillPerMicro(endpoint, at));
  }
}

type Answered = Extract<Input, { kind: "request-finished" }> & { readonly outputTokens: number };

/** An embedding, a score or a class has no tokens, and is no evidence of how long answers are. */
function isAnswer(input: Input): input is Answered {
  return input.kind === "request-finished" && input.outcome === "ok" && (input.outputTokens ?? 0) > 0;
}
