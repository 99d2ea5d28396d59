import type { FirstTokenResiduals, SeenStalls } from "#engine/step-drift.ts";
import { expectedFirstTokens } from "../candidate/expected-noise.ts";
import type { Evidence } from "./evidence.ts";
import type { ForcedOutcome } from "./forced-replay.ts";
import { runStarts } from "./step-windows.ts";
import { meanOf } from "../figure/mean-of.ts";

interface Noise {
  readonly firstTokens: FirstTokenResiduals | undefined;
  readonly stalls: SeenStalls;
}

/**
 * Noise that adds no more to the mean time to the first token than was seen beyond the replay without it, of several runs
 * in the middle of them: where it would,
 * how late first tokens are and how long stalls last is a part of what was found. What looks like a stall of all may
 * have held up few, and what one slow minute did to many requests is not met by each of them anew.
 */
export function explainedNoise(
  evidence: Evidence,
  outcome: ForcedOutcome,
  firstTokens: FirstTokenResiduals | undefined,
  stalls: SeenStalls,
): Noise {
  const noise = { firstTokens, stalls };
  if (firstTokens === undefined) return noise;
  const starts = runStarts(evidence);
  const runs = starts.map(() => ({ seen: 0, replayed: 0 }));
  let [run, count] = [0, 0];
  const simulated = outcome.ttftMicros.map((micros, i) => {
    const { ok, arrivalAt, ttftMicros } = evidence.rows[i]!;
    while (arrivalAt >= (starts[run + 1] ?? Infinity)) run++;
    if (!ok || !(micros > 0)) return NaN;
    count++;
    runs[run]!.seen += ttftMicros;
    runs[run]!.replayed += micros;
    return micros;
  });
  const replayed = runs.reduce((sum, one) => sum + one.replayed, 0);
  const off = runs.flatMap((one) => (one.replayed > 0 ? [Math.log(one.seen / one.replayed)] : []));
  const missing = replayed * Math.expm1(off.length === 0 ? 0 : meanOf(off));
  const part = (share: number) => addedMicros(simulated, scaled(noise, share)) * count - missing;
  if (count === 0 || part(1) <= 0) return noise;
  let [low, high] = [0, 1];
  for (let round = 0; round < ROUNDS; round++) {
    const middle = (low + high) / 2;
    if (part(middle) > 0) high = middle;
    else low = middle;
  }
  return scaled(noise, low);
}

const ROUNDS = 8;

/** Mean of what the noise adds to a first token. */
function addedMicros(simulated: Float64Array, { firstTokens, stalls }: Noise): number {
  const { repeats, first } = expectedFirstTokens(simulated, firstTokens!, stalls);
  let [sum, count] = [0, 0];
  first.forEach((micros, at) => {
    if (Number.isNaN(micros)) return;
    sum += micros - simulated[Math.floor(at / repeats)]!;
    count++;
  });
  return count === 0 ? 0 : sum / count;
}

function scaled({ firstTokens, stalls }: Noise, share: number): Noise {
  const part = (micros: number) => Math.round(share * micros);
  // What is scaled to nothing is no stall.
  const micros = stalls.micros.map(part).filter((one) => one > 0);
  const count = stalls.micros.length === 0 ? 0 : Math.round((stalls.count * micros.length) / stalls.micros.length);
  return {
    firstTokens: firstTokens && { ...firstTokens, laterMicros: firstTokens.laterMicros.map(part) },
    stalls: { ...stalls, count, micros },
  };
}
