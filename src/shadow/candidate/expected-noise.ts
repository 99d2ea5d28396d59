import type { FirstTokenResiduals, SeenStalls } from "#engine/step-drift.ts";
import { firstTokenNeighbours, laterMicros } from "./first-token-noise.ts";

/** Times that a short workload's figures are taken of, at least. */
const TIMES_MIN = 8192;
/** Times that each request is taken at most. */
const REPEATS_MAX = 32;

export interface ExpectedFirstTokens {
  /** Places that one request has, one after another. */
  readonly repeats: number;
  /** Microseconds; NaN for a request without a first token. */
  readonly first: Float64Array;
}

/**
 * Times to the first token with what single ones are late by: each request is taken many times, evenly over how late
 * recorded ones like it were and over the stalls that it may meet. Nothing is drawn.
 */
export function expectedFirstTokens(
  simulated: Float64Array,
  firstTokens: FirstTokenResiduals,
  stalls: SeenStalls | undefined,
): ExpectedFirstTokens {
  const count = simulated.length;
  const repeats = Math.min(REPEATS_MAX, Math.ceil(TIMES_MIN / Math.max(1, count)));
  const first = new Float64Array(count * repeats).fill(NaN);
  const stalled = stallPlaces(stalls);
  simulated.forEach((micros, i) => {
    if (Number.isNaN(micros)) return;
    const around = firstTokenNeighbours(firstTokens, micros);
    for (let at = i * repeats; at < (i + 1) * repeats; at++) {
      const one = around.from + Math.floor(evenly(at, STEP_NEIGHBOUR) * around.count);
      const late = laterMicros(firstTokens, one, micros);
      first[at] = late + stalled(micros, evenly(at, STEP_STALL), evenly(at, STEP_LENGTH));
    }
  });
  return { repeats, first };
}

/**
 * What stalls add to a first token: one that begins meanwhile adds its length, one in which the request comes what is left
 * of it. Longer waits than a stall meet several, which are in the level of all steps.
 */
function stallPlaces(stalls: SeenStalls | undefined): (simulated: number, hit: number, place: number) => number {
  if (stalls === undefined || stalls.count === 0) return () => 0;
  const perMicro = stalls.count / stalls.watchedMicros;
  const { micros } = stalls;
  return (simulated, hit, place) => {
    const length = micros[Math.floor(place * micros.length)]!;
    const meanwhile = Math.min(simulated, length);
    const met = perMicro * (meanwhile + length);
    if (hit >= met) return 0;
    const part = (hit / met) * (meanwhile + length);
    return part < meanwhile ? length : part - meanwhile;
  };
}

/** Steps of an additive sequence in three dimensions: the powers of the inverse of x^4 = x + 1 (M. Roberts's R3, 2018). */
const STEP_NEIGHBOUR = 0.8191725133961645;
const STEP_STALL = 0.6710436067037893;
const STEP_LENGTH = 0.5497004779019703;

/** In [0, 1), evenly over neighbouring places. */
export function evenly(at: number, step: number): number {
  return (0.5 + (at + 1) * step) % 1;
}
