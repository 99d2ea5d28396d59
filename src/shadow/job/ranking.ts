import { nameHash, randomFor } from "#core/base/random.ts";
import { normal } from "../figure/normal.ts";

/** Draws in all; each replica takes its part of them. */
const DRAWS = 1000;
/** Blocks that requests are resampled by, at most. */
const BLOCKS_MAX = 512;

/** Independent looks that the blocks of one simulation stand for at most. */
const LOOKS_MAX = 20;

/** How sure an order is. Candidates have the places that they were given in. */
export interface Ranking {
  readonly draws: number;
  /** How likely the candidate's mean is the least. They add up to 1. */
  readonly first: readonly number[];
  /** `before[a][b]`: how likely a's mean is below b's; an equal mean counts half. With `before[b][a]` it is 1. */
  readonly before: readonly (readonly number[])[];
}

/** Sums of a metric over blocks of neighbouring requests, and how many of them had a value. */
export interface RankingSums {
  readonly sums: Float64Array;
  readonly counts: Float64Array;
}

/**
 * The sums of values in order of arrival, NaN left out: blocks of the square root of their number, at most BLOCKS_MAX
 * blocks.
 */
export function blockSumsOf(values: Float64Array): RankingSums {
  const length = Math.max(Math.ceil(Math.sqrt(values.length)), Math.ceil(values.length / BLOCKS_MAX));
  const blocks = Math.ceil(values.length / length);
  const [sums, counts] = [new Float64Array(blocks), new Float64Array(blocks)];
  for (let i = 0; i < values.length; i++) {
    if (Number.isNaN(values[i]!)) continue;
    const block = Math.floor(i / length);
    sums[block]! += values[i]!;
    counts[block]!++;
  }
  return { sums, counts };
}

/**
 * Ranks candidates by their mean over and over: in every replica of the simulation, on requests resampled by blocks. All
 * candidates meet the same replica and the same requests each time; what the model itself does wrong with each of them
 * (`errors`: standard deviations of logarithms, a candidate each) is drawn beside, the same for two that do the same.
 * `replicas[r][c]` is candidate c's blocks in replica r.
 *
 * A share k of n replicas means (k + 1/2) / (n + 1) for two candidates, so that what none of a few has shown is not
 * called impossible; without replicas the blocks count, up to LOOKS_MAX.
 */
export function rankingOf(
  replicas: readonly (readonly RankingSums[])[],
  seed: number,
  errors: readonly number[] = [],
): Ranking {
  const candidates = replicas[0]?.length ?? 0;
  const perReplica = Math.ceil(DRAWS / replicas.length);
  const random = randomFor(seed, nameHash("ranking"));
  const modelRandom = randomFor(seed, nameHash("ranking's model"));
  const twins = twinsOf(replicas, candidates);
  const factors = new Float64Array(candidates);
  const first = new Float64Array(candidates);
  const before = Array.from({ length: candidates }, () => new Float64Array(candidates));
  const means = new Float64Array(candidates);
  const sums = new Float64Array(candidates);
  const counts = new Float64Array(candidates);
  for (const replica of replicas) {
    const blocks = replica[0]?.sums.length ?? 0;
    for (let draw = 0; draw < perReplica; draw++) {
      sums.fill(0);
      counts.fill(0);
      for (let i = 0; i < blocks; i++) {
        const block = random.below(blocks);
        for (let c = 0; c < candidates; c++) {
          sums[c]! += replica[c]!.sums[block]!;
          counts[c]! += replica[c]!.counts[block]!;
        }
      }
      // Who answers nothing comes last.
      for (let c = 0; c < candidates; c++) means[c] = counts[c]! > 0 ? sums[c]! / counts[c]! : Infinity;
      for (let c = 0; c < candidates; c++) factors[c] = Math.exp((errors[c] ?? 0) * normal(modelRandom));
      // Two that do the same meet the same error.
      for (let c = 0; c < candidates; c++) means[c]! *= factors[twins[c]!]!;
      count(means, first, before);
    }
  }
  const draws = replicas.length * perReplica;
  const looks = replicas.length > 1 ? replicas.length : Math.min(LOOKS_MAX, replicas[0]?.[0]?.sums.length ?? 1);
  const likely = (count: number, among: number) => ((count / draws) * looks + 1 / among) / (looks + 1);
  return {
    draws,
    first: Array.from(first, (count) => likely(count, candidates)),
    before: before.map((row, a) => Array.from(row, (count, b) => (a === b ? 0 : likely(count, 2)))),
  };
}

/** The first candidate that has the same sums in every replica. */
function twinsOf(replicas: readonly (readonly RankingSums[])[], candidates: number): number[] {
  const same = (a: number, b: number) =>
    replicas.every((one) => one[a]!.sums.every((sum, block) => sum === one[b]!.sums[block]));
  return Array.from({ length: candidates }, (_, c) => {
    let first = 0;
    while (!same(first, c)) first++;
    return first;
  });
}

function count(means: Float64Array, first: Float64Array, before: readonly Float64Array[]): void {
  let least = Infinity;
  let leaders = 0;
  for (const mean of means) {
    if (mean < least) [least, leaders] = [mean, 1];
    else if (mean === least) leaders++;
  }
  for (let a = 0; a < means.length; a++) {
    if (means[a] === least) first[a]! += 1 / leaders;
    for (let b = 0; b < means.length; b++) {
      if (a === b) continue;
      if (means[a]! < means[b]!) before[a]![b]!++;
      else if (means[a] === means[b]) before[a]![b]! += 0.5;
    }
  }
}
