import type { StepResiduals } from "#engine/step-drift.ts";
import type { Distribution } from "#sim/result/distribution.ts";
import type { CandidateOutcome } from "./candidate.ts";
import { evenly, expectedFirstTokens } from "./expected-noise.ts";
import { figuresOf } from "../figure/figures.ts";
import { type PerMetric, perMetric } from "../figure/metric.ts";

/**
 * What is predicted: the figures of the run on engines without noise, with what single first tokens are late by beside
 * them. Each request is taken many times, evenly over how late recorded ones like it were, over the stalls that it
 * may meet and over how steps wandered, so that nothing is drawn and no seed moves it; what a queue makes of noise is left to the replicas.
 */
export function estimateOf(
  outcome: CandidateOutcome,
  residuals: StepResiduals | undefined,
): PerMetric<Distribution | undefined> {
  const { firstTokens, windows = [[0]], windowMicros = 1, stalls } = residuals ?? {};
  if (firstTokens === undefined) return perMetric((metric) => figuresOf(outcome[metric]));
  const { ttftMicros, tpotMicros, e2eMicros, endpoint } = outcome;
  const { repeats, first } = expectedFirstTokens(ttftMicros, firstTokens, stalls);
  const drifts = windows.map(wanderOf);
  const tpot = new Float64Array(first.length);
  const whole = new Float64Array(first.length);
  for (let at = 0; at < first.length; at++) {
    const i = Math.floor(at / repeats);
    const after = e2eMicros[i]! - ttftMicros[i]!;
    const drift = drifts[Math.max(0, endpoint[i]!) % drifts.length]!;
    const factor = drift(evenly(at, STEP_WINDOW), after / windowMicros);
    tpot[at] = tpotMicros[i]! * factor;
    whole[at] = first[at]! + after * factor;
  }
  return { ttftMicros: figuresOf(first), tpotMicros: figuresOf(tpot), e2eMicros: figuresOf(whole) };
}

/** Steps over their usual time, averaged over so many windows from a place in [0, 1) on; its mean over all places is 1. */
function wanderOf(logs: readonly number[]): (place: number, span: number) => number {
  const count = logs.length;
  if (count < 2) return () => 1;
  const sums = new Float64Array(2 * count + 1);
  for (let w = 0; w < 2 * count; w++) sums[w + 1] = sums[w]! + Math.exp(logs[w % count]!);
  const usual = sums[count]! / count;
  return (place, span) => {
    const from = Math.floor(place * count);
    const many = Math.min(count, Math.max(1, Math.round(span)));
    return (sums[from + many]! - sums[from]!) / many / usual;
  };
}

/** See evenly. */
const STEP_WINDOW = 0.6180339887498949;
