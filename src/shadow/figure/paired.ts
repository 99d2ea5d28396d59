import { nameHash, randomFor } from "#core/base/random.ts";

const RESAMPLES = 400;

/** Mean of paired differences with a 95 % bootstrap interval, in the values' unit. */
export interface PairedDifference {
  readonly pairs: number;
  readonly mean: number;
  readonly low: number;
  readonly high: number;
  /** Share of resamples in which the mean difference is below 0. */
  readonly belowZero: number;
}

/**
 * Compares two measurements of the same requests, candidate less base. Pairs with a NaN are left out. Requests are
 * resampled in blocks of neighbours: those that were in flight together slow one another down, and single ones would make
 * the interval too narrow.
 */
export function pairedDifference(
  candidate: Float64Array,
  base: Float64Array,
  seed: number,
): PairedDifference | undefined {
  const prefix = new Float64Array(candidate.length + 1);
  let pairs = 0;
  for (let i = 0; i < candidate.length; i++) {
    const difference = candidate[i]! - base[i]!;
    if (Number.isNaN(difference)) continue;
    prefix[pairs + 1] = prefix[pairs]! + difference;
    pairs++;
  }
  if (pairs === 0) return undefined;
  const blockLength = Math.max(1, Math.ceil(Math.sqrt(pairs)));
  const random = randomFor(seed, nameHash("bootstrap"));
  const means = new Float64Array(RESAMPLES);
  for (let r = 0; r < RESAMPLES; r++) {
    let sum = 0;
    let taken = 0;
    while (taken < pairs) {
      const length = Math.min(blockLength, pairs - taken);
      const start = random.below(pairs - length + 1);
      sum += prefix[start + length]! - prefix[start]!;
      taken += length;
    }
    means[r] = sum / pairs;
  }
  means.sort();
  return {
    pairs,
    mean: prefix[pairs]! / pairs,
    low: means[Math.floor(0.025 * RESAMPLES)]!,
    high: means[Math.ceil(0.975 * RESAMPLES) - 1]!,
    belowZero: means.filter((mean) => mean < 0).length / RESAMPLES,
  };
}
