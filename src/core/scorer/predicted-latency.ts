import type { Decision } from "../input/decision.ts";
import type { Snapshot } from "../endpoint/snapshot.ts";
import type { Input } from "../input/input.ts";
import type { Forecast } from "../latency/forecast.ts";
import type { Noted, NotedLoadSource } from "../request/noted.ts";
import type { RouteRequest } from "../request/request.ts";
import { MICROS_PER_SECOND } from "../base/units.ts";
import { addedWeights, scoreAdded, type WaitingWeights } from "./added-latency.ts";
import { EndpointWindows } from "./window-sum.ts";
import { FORECASTER_PARAMETERS, type ForecasterOptions, LatencyForecaster } from "./latency-forecaster.ts";
import { type Scorer, scorerPlugin } from "./scorer.ts";

/** Why a decision is not by the forecast. */
export const FORECAST_UNSURE = "forecast-unsure";

/**
 * Prefers the endpoint where this request adds the least time, its own and that of the requests there, now and later, in
 * microseconds as predicted from what engines were seen to take (LatencyModel).
 *
 *     turn     = predicted time until others have ended and there is room
 *     wait     = predicted TTFT - turn - own prefill,  own prefill = time of the new tokens
 *     prefill  = own prefill * (1 + n + cacheWeight * demand)
 *     decode   = output tokens * (predicted TPOT + n * what this prompt and its answers add to a step)
 *     overflow = time of the tokens of context and new ones together beyond roomShare of the KV cache, where it is known
 *     cost     = waitWeight * wait + turn * (1 + (turnWeight - 1) * turnSeconds / (turnSeconds + turn))
 *              + prefill + batchWeight * decode + fullWeight * overflow
 *     score    = best cost / cost
 *
 * n requests are there, those that wait included: they wait for the new tokens too. A turn costs the less the longer all
 * wait: in a fleet that is full everywhere nobody is spared it, and who finds most of its prompt in a cache makes the
 * line shorter for all. It is also the least certain of the terms.
 *
 * Endpoints whose step times are known, by their engine file or a fit, begin with those and are learned on from together;
 * all others begin with the parameters. Who joins, or comes back as a new process, has had no time to be asked for much,
 * and counts as in mean demand: else it got most of what began in its first seconds, and made it wait. `demand` and the reasons for the other weights are added-latency's, whose cost is
 * counted in tokens and holds for one kind of engine; here what a token, a sequence and a step take is learned, and each
 * endpoint's own speed.
 *
 * A forecast that has been further off lately than the moving average of each endpoint's first tokens (ForecastTrial) does
 * not decide: added-latency does then, and that is the reason that the decision states.
 */
export const predictedLatency = scorerPlugin({
  summary: "time that the request would add there, for itself and for the requests it joins, as predicted",
  reads: ["ledger", "scrape:load", "scrape:kv", "prefix-index", "usage", "observed-latency"],
  source: "gnomon; added-latency in the time of a model of vLLM's steps, learned while it routes",
  parameters: {
    waitWeight: { type: "number", default: 8, min: 0, meaning: "what waiting for the own prompt's turn costs" },
    turnWeight: { type: "number", default: 4, min: 1, meaning: "what waiting for room costs while that is short" },
    turnSeconds: { type: "number", default: 4, min: 0, meaning: "what is short there; beyond it a second counts once" },
    cacheWeight: {
      type: "number",
      default: 5,
      min: 0,
      meaning: "what a new token costs beside its time, at mean demand",
    },
    batchWeight: {
      type: "number",
      default: 0.3,
      min: 0,
      meaning: "what longer steps cost against waiting for prompts",
    },
    fullWeight: {
      type: "number",
      default: 2,
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
    ...FORECASTER_PARAMETERS,
  },
  create: (name, parameters) => new LatencyScorer(name, parameters),
});

interface Weights extends ForecasterOptions {
  readonly waitWeight: number;
  readonly turnWeight: number;
  readonly turnSeconds: number;
  readonly cacheWeight: number;
  readonly batchWeight: number;
  readonly fullWeight: number;
  readonly roomShare: number;
  readonly windowSeconds: number;
  readonly evidenceTokens: number;
}

class LatencyScorer implements Scorer {
  readonly name: string;
  readonly #weights: Weights;
  readonly #forecaster: LatencyForecaster;
  readonly #sent: EndpointWindows;
  /** By which added-latency decides where the forecast may not. */
  readonly #unsure: WaitingWeights;

  constructor(name: string, weights: Weights) {
    this.name = name;
    this.#weights = weights;
    this.#forecaster = new LatencyForecaster(weights);
    this.#sent = new EndpointWindows(weights.windowSeconds);
    this.#unsure = addedWeights({ evidenceTokens: weights.evidenceTokens });
  }

  get reason(): string | undefined {
    return this.#forecaster.isNearer === false ? FORECAST_UNSURE : undefined;
  }

  score(request: RouteRequest, candidates: readonly Snapshot[], scores: Float64Array): void {
    const { promptTokens } = request;
    if (this.#forecaster.isNearer === false) {
      const situation = { promptTokens, outputTokens: this.#forecaster.outputTokens, sent: this.#sent };
      scoreAdded(this.#unsure, situation, candidates, scores);
      return;
    }
    const { evidenceTokens } = this.#weights;
    const mean = this.#sent.sums(candidates, scores) / candidates.length + evidenceTokens;
    let best = Infinity;
    for (let i = 0; i < candidates.length; i++) {
      const demand = mean > 0 ? (scores[i]! + evidenceTokens) / mean : 1;
      scores[i] = this.#cost(i, candidates[i]!, request, demand);
      best = Math.min(best, scores[i]!);
    }
    for (let i = 0; i < candidates.length; i++) scores[i] = best / scores[i]!;
  }

  forecast(request: RouteRequest, candidate: Snapshot): Forecast {
    return this.#forecaster.forecast(request, candidate);
  }

  note(chosen: NotedLoadSource): Noted | undefined {
    return this.#forecaster.note(chosen);
  }

  observe(input: Input, decision: Decision | undefined, request: RouteRequest | undefined): void {
    if (decision?.kind === "routed" && request !== undefined) {
      this.#sent.add(decision.endpoint, input.at, request.promptTokens);
    }
    this.#forecaster.observe(input, decision, request);
    if (input.kind === "endpoint-joined") this.#sent.begin(input.endpoint.id, input.at);
    if (input.kind === "blocks-cleared" && input.inOrder === undefined) this.#sent.begin(input.endpoint, input.at);
    if (input.kind === "endpoint-left") this.#sent.forget(input.endpoint);
  }

  #cost(place: number, candidate: Snapshot, request: RouteRequest, demand: number): number {
    const weights = this.#weights;
    const forecaster = this.#forecaster;
    const { promptTokens } = request;
    const { id, endpoint, effectiveLoad } = candidate;
    const known = forecaster.placeOf(place, candidate);
    const { model, speeds } = known;
    const situation = forecaster.situationAt(known, candidate, request);
    const own = situation.newTokens * model.tokenMicros * (speeds?.ttft.value ?? 1);
    const turn = model.turnMicros(id, situation, speeds);
    const short = weights.turnSeconds * MICROS_PER_SECOND;
    const turned = turn === 0 ? 0 : turn * (1 + ((weights.turnWeight - 1) * short) / (short + turn));
    const wait = model.ttftBehind(situation, speeds, turn) - own - turn;
    const prefill = own * (1 + effectiveLoad + weights.cacheWeight * demand);
    const added = effectiveLoad * (speeds?.tpot.value ?? 1) * model.addedMicros(promptTokens, situation.sequences);
    const decode = forecaster.outputTokens * (model.tpotMicros(id, situation, promptTokens, speeds) + added);
    const { kvCapacityTokens } = endpoint;
    const room = kvCapacityTokens === undefined ? Infinity : kvCapacityTokens * weights.roomShare;
    const overflow = Math.max(0, situation.contextTokens + situation.newTokens - room) * model.tokenMicros;
    return weights.waitWeight * wait + turned + prefill + weights.batchWeight * decode + weights.fullWeight * overflow;
  }
}
