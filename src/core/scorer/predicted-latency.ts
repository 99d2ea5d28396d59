import type { Routed } from "../decision.ts";
import type { EndpointId } from "../endpoint/endpoint.ts";
import { Ewma } from "../endpoint/ewma.ts";
import { newTokens } from "../endpoint/gauge.ts";
import type { Snapshot } from "../endpoint/snapshot.ts";
import type { Input } from "../input.ts";
import { LatencyModel, type Situation } from "../latency/latency-model.ts";
import { UnderWay } from "../latency/under-way.ts";
import type { RouteRequest } from "../request.ts";
import { MICROS_PER_SECOND } from "../units.ts";
import { EndpointWindows } from "./endpoint-windows.ts";
import { scorerPlugin } from "./scorer.ts";

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
 * n requests are there. `demand` and the reasons for the weights are added-latency's, whose cost is counted in tokens and
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
  create(name, parameters) {
    const model = new LatencyModel(parameters);
    const underWay = new UnderWay(model);
    const answer = new Ewma(OUTPUT_TAU_MICROS);
    const sent = new EndpointWindows(parameters.windowSeconds);
    const computed = new EndpointWindows(RATE_SECONDS);

    const situationAt = (candidate: Snapshot, promptTokens: number, outputTokens: number): Situation => {
      const { id, at, effectiveLoad, requestsInFlight, prefillTokensQueued, promptTokensInFlight } = candidate;
      const foreign = Math.max(0, effectiveLoad - requestsInFlight);
      return {
        requests: effectiveLoad,
        contextTokens: promptTokensInFlight + foreign * promptTokens + (effectiveLoad * outputTokens) / 2,
        queuedTokens: prefillTokensQueued,
        newTokens: newTokens(candidate, promptTokens),
        prefillPerMicro: computed.sum(id, at) / (RATE_SECONDS * MICROS_PER_SECOND),
      };
    };

    const cost = (candidate: Snapshot, promptTokens: number, outputTokens: number, demand: number): number => {
      const { id, endpoint } = candidate;
      const situation = situationAt(candidate, promptTokens, outputTokens);
      const own = situation.newTokens * model.tokenMicros * model.ttftSpeed(id);
      const wait = model.ttftMicros(id, situation) - own;
      const prefill = own * (1 + situation.requests + parameters.cacheWeight * demand);
      const added = situation.requests * model.tpotSpeed(id) * model.addedMicros(promptTokens);
      const decode = outputTokens * (model.tpotMicros(id, situation, promptTokens) + added);
      const { kvCapacityTokens } = endpoint;
      const room = kvCapacityTokens === undefined ? Infinity : kvCapacityTokens * parameters.roomShare;
      const over = Math.max(0, situation.contextTokens + situation.newTokens - room) * model.tokenMicros;
      return parameters.waitWeight * wait + prefill + parameters.batchWeight * decode + parameters.fullWeight * over;
    };

    const routed = (decision: Routed, request: RouteRequest, at: number): void => {
      const { endpoint } = decision;
      sent.add(endpoint, at, request.promptTokens);
      const row = decision.breakdown.candidates.find((one) => one.endpoint === endpoint);
      if (row === undefined || decision.prefill !== undefined) return;
      const added = Math.max(1, request.promptTokens - decision.hitTokens);
      computed.add(endpoint, at, added);
      underWay.began(decision, request, row, added, computed.sum(endpoint, at) / (RATE_SECONDS * MICROS_PER_SECOND));
    };

    return {
      name,
      score({ promptTokens }, candidates, scores) {
        const outputTokens = answer.value ?? parameters.outputTokensGuess;
        let sum = 0;
        for (let i = 0; i < candidates.length; i++) sum += scores[i] = sent.sum(candidates[i]!.id, candidates[i]!.at);
        const mean = sum / candidates.length + parameters.evidenceTokens;
        let best = Infinity;
        for (let i = 0; i < candidates.length; i++) {
          const demand = mean > 0 ? (scores[i]! + parameters.evidenceTokens) / mean : 1;
          scores[i] = cost(candidates[i]!, promptTokens, outputTokens, demand);
          best = Math.min(best, scores[i]!);
        }
        for (let i = 0; i < candidates.length; i++) scores[i] = best / scores[i]!;
      },
      observe(input, decision, request) {
        if (decision?.kind === "routed" && request !== undefined) routed(decision, request, input.at);
        underWay.observe(input);
        if (input.kind === "endpoint-left") forget(input.endpoint);
        if (isAnswer(input)) answer.add(input.at, input.outputTokens);
      },
    };

    function forget(endpoint: EndpointId): void {
      sent.forget(endpoint);
      computed.forget(endpoint);
      model.forget(endpoint);
    }
  },
});

type Answered = Extract<Input, { kind: "request-finished" }> & { readonly outputTokens: number };

/** An embedding, a score or a class has no tokens, and is no evidence of how long answers are. */
function isAnswer(input: Input): input is Answered {
  return input.kind === "request-finished" && input.outcome === "ok" && (input.outputTokens ?? 0) > 0;
}
