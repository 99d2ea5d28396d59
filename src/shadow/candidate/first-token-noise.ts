import { nameHash, randomFor } from "#core/base/random.ts";
import type { FirstTokenResiduals } from "#engine/step-drift.ts";
import type { CandidateOutcome } from "./candidate.ts";
import { normal } from "../figure/normal.ts";

/** Part of the recorded requests, those whose predicted times are nearest, that one request draws from. */
const NEIGHBOUR_PART = 0.25;
/** A first token comes no earlier than this part of its simulated time. */
const LEAST_PART = 0.05;

/**
 * A replica's times with what single requests meet beyond the engine model: each request's first token comes as much later
 * as that of a recorded request of about the same predicted time did, and all after it with it.
 *
 *     later = recorded later * min(1, simulated time / predicted time of the recorded one)
 *
 * so that a pause stays as long as it was, and what a long queue was off by shrinks with the queue. Draws depend on the
 * seed, the replica and the request alone: all candidates meet the same. `noiseError`: standard deviation of the logarithm
 * of how late all of them come, from one run to another.
 */
export function withFirstTokenNoise(
  outcome: CandidateOutcome,
  firstTokens: FirstTokenResiduals,
  seed: number,
  replica: number,
  noiseError = 0,
): CandidateOutcome {
  const { predictedMicros } = firstTokens;
  const random = randomFor(seed, nameHash("first token") + replica);
  const recorded = predictedMicros.length;
  const noise = Math.exp(noiseError * normal(random));
  // Which few of them were late is chance too: each replica has its own sample of as many.
  const sample = Int32Array.from(predictedMicros, () => random.below(recorded)).sort();
  const neighbours = Math.max(1, Math.ceil(NEIGHBOUR_PART * recorded));
  const ttftMicros = outcome.ttftMicros.slice();
  const e2eMicros = outcome.e2eMicros.slice();
  for (let i = 0; i < ttftMicros.length; i++) {
    const drawn = random.below(neighbours);
    const simulated = ttftMicros[i]!;
    if (Number.isNaN(simulated)) continue;
    const place = placeOf(predictedMicros, sample, simulated) - (neighbours >> 1);
    const one = sample[Math.min(recorded - neighbours, Math.max(0, place)) + drawn]!;
    ttftMicros[i] = laterMicros(firstTokens, one, simulated, noise);
    e2eMicros[i]! += ttftMicros[i]! - simulated;
  }
  return { ...outcome, ttftMicros, e2eMicros };
}

/** A first token that comes as much later than it was simulated, in microseconds, as that of the recorded request `one`. */
export function laterMicros(firstTokens: FirstTokenResiduals, one: number, simulated: number, noise = 1): number {
  const later = noise * firstTokens.laterMicros[one]! * Math.min(1, simulated / firstTokens.predictedMicros[one]!);
  return Math.max(LEAST_PART * simulated, simulated + later);
}

/** The recorded requests that one of this simulated time draws from: so many, from that place on. */
export function firstTokenNeighbours({ predictedMicros }: FirstTokenResiduals, simulated: number) {
  const recorded = predictedMicros.length;
  const count = Math.max(1, Math.ceil(NEIGHBOUR_PART * recorded));
  let [low, high] = [0, recorded];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (predictedMicros[middle]! < simulated) low = middle + 1;
    else high = middle;
  }
  return { from: Math.min(recorded - count, Math.max(0, low - (count >> 1))), count };
}

/** How many of the sample of `rising` are below the value. */
function placeOf(rising: readonly number[], sample: Int32Array, value: number): number {
  let [low, high] = [0, sample.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rising[sample[middle]!]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
