import { newTokens } from "../endpoint/gauge.ts";
import type { Snapshot } from "../endpoint/snapshot.ts";

/** As parameters of added-latency. */
export interface WaitingWeights {
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
export interface Asked {
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly demand: number;
  readonly promptSpeed: number;
  readonly stepSpeed: number;
}

/** Waiting that a request adds at a candidate, in prompt tokens; the formula is added-latency's. */
export function addedWaiting(weights: WaitingWeights, candidate: Snapshot, asked: Asked): number {
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
